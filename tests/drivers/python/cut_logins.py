"""The Python driver with a login while a move is cut over: HOST:PORT KEYSPACE USER PASSWORD [CAFILE].

The server closes connections that have logged in, and the driver logs in again. Several threads insert rows, append to lists and add to
counters without pause. An insert whose request failed is repeated, an append and an addition are not; both say in the end how often a request
failed. The program prints `running`, goes on until it gets a line and for some more steps. Then it reads everything back: each write that was acknowledged must be
there once, one that failed at most once, and requests may fail for lost connections alone. What the role may not do must be refused all the time.
"""

import collections
import ssl
import sys
import threading
import time

from cassandra import ConsistencyLevel, OperationTimedOut, Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.policies import ConstantReconnectionPolicy, FallthroughRetryPolicy

THREADS = 4
# Steps of each thread before the program says `running`, and after the line.
BEFORE, AFTER = 50, 100
# The pause before a request is repeated, seconds.
PAUSE = 0.02
# What an application repeats.
LOST = (NoHostAvailable, ConnectionException, OperationTimedOut)


def main():
    address, keyspace, user, password = sys.argv[1:5]
    host, port = address.rsplit(":", 1)
    profile = ExecutionProfile(
        consistency_level=ConsistencyLevel.QUORUM, request_timeout=30, retry_policy=FallthroughRetryPolicy()
    )
    context = None
    if len(sys.argv) > 5:
        context = ssl.create_default_context(cafile=sys.argv[5])
        context.check_hostname = False
    cluster = Cluster(
        [host],
        port=int(port),
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        connect_timeout=30,
        auth_provider=PlainTextAuthProvider(user, password) if user else None,
        ssl_context=context,
        reconnection_policy=ConstantReconnectionPolicy(0.1, None),
    )
    session = cluster.connect(keyspace)
    insert = session.prepare("INSERT INTO rows (k, v) VALUES (?, ?)")
    append = session.prepare("UPDATE lists SET l = l + ? WHERE k = ?")
    add = session.prepare("UPDATE counts SET n = n + 1 WHERE k = ?")
    failures, lost = [], collections.Counter()
    steps, unknown = [0] * THREADS, [[0, 0] for _ in range(THREADS)]
    begun, ends = threading.Barrier(THREADS + 1), threading.Event()

    def run(statement, values):
        """Whether it was acknowledged."""
        try:
            session.execute(statement, values)
            return True
        except LOST as error:
            lost[type(error).__name__] += 1
            time.sleep(PAUSE)
            return False

    def refused():
        if user:
            try:
                session.execute("SELECT * FROM closed")
                failures.append("a table without permission was read")
            except Unauthorized:
                pass
            except LOST:
                pass

    def work(number):
        after, step = AFTER, 0
        while after > 0:
            try:
                while not run(insert, (step * THREADS + number, step)):
                    pass
                unknown[number][0] += not run(append, ([step], number))
                unknown[number][1] += not run(add, (number,))
                if step % 20 == 0:
                    refused()
            except Exception as error:
                failures.append(f"step {step}: {type(error).__name__}: {error}")
            step += 1
            steps[number] = step
            if step == BEFORE:
                begun.wait()
            after -= ends.is_set()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    begun.wait()
    print("running", flush=True)
    sys.stdin.readline()
    ends.set()
    for thread in threads:
        thread.join()
    rows = {row.k: row.v for row in session.execute("SELECT k, v FROM rows")}
    expected = {step * THREADS + number: step for number in range(THREADS) for step in range(steps[number])}
    if rows != expected:
        failures.append(f"{len(rows)} rows of {len(expected)}")
    for number in range(THREADS):
        appended = session.execute("SELECT l FROM lists WHERE k = %s", (number,)).one().l
        if len(set(appended)) != len(appended) or not 0 <= steps[number] - len(appended) <= unknown[number][0]:
            failures.append(f"list {number}: {len(appended)} elements for {steps[number]} steps, {unknown[number][0]} unknown")
        count = session.execute("SELECT n FROM counts WHERE k = %s", (number,)).one().n
        if not 0 <= steps[number] - count <= unknown[number][1]:
            failures.append(f"counter {number}: {count} for {steps[number]} steps, {unknown[number][1]} unknown")
    for failure in failures[:20]:
        print("FAILED", failure)
    names = ", ".join(f"{name} {count}" for name, count in sorted(lost.items())) or "none"
    print("FAILED" if failures else "ok", sum(steps), "steps; lost requests:", names)
    cluster.shutdown()
    sys.exit(bool(failures))


main()
