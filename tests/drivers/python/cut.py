"""The Python driver while a move is cut over: HOST:PORT KEYSPACE.

It inserts, updates, appends to lists and reads without pause, in several threads, and never repeats a request. It prints `running`, goes
on until it gets a line, and then until it has found another host, for a minute at most. Then it reads everything back: each write that was acknowledged must be there once,
and no request may have failed. The last line says where the requests went.
"""

import collections
import sys
import threading
import time

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import FallthroughRetryPolicy

THREADS = 4
# Writes of each thread before it says `running`, and after the line.
BEFORE, AFTER = 100, 500
# How long other hosts are waited for, and the pause between two steps meanwhile, seconds.
PATIENCE, PAUSE = 60, 0.01


def main():
    address, keyspace = sys.argv[1:3]
    host, port = address.rsplit(":", 1)
    profile = ExecutionProfile(
        consistency_level=ConsistencyLevel.QUORUM, request_timeout=30, retry_policy=FallthroughRetryPolicy()
    )
    cluster = Cluster([host], port=int(port), execution_profiles={EXEC_PROFILE_DEFAULT: profile}, connect_timeout=30)
    session = cluster.connect(keyspace)
    insert = session.prepare("INSERT INTO python_rows (k, v) VALUES (?, ?)")
    update = session.prepare("UPDATE python_rows SET v = ? WHERE k = ?")
    append = session.prepare("UPDATE python_lists SET l = l + ? WHERE k = ?")
    read = session.prepare("SELECT v FROM python_rows WHERE k = ?")
    failures, hosts, counts = [], collections.Counter(), [0] * THREADS
    begun, ends, until = threading.Barrier(THREADS + 1), threading.Event(), [0]

    def run(statement, values):
        future = session.execute_async(statement, values)
        rows = list(future.result())
        hosts[future.coordinator_host.address] += 1
        return rows

    def work(number):
        after, step = AFTER, 0
        while after > 0:
            key = step * THREADS + number
            try:
                run(insert, (key, 0))
                run(update, (key + 1, key))
                run(append, ([step], number))
                found = run(read, (key,))[0].v
                if found != key + 1:
                    failures.append(f"row {key} had {found}")
            except Exception as error:
                failures.append(f"{key}: {type(error).__name__}: {error}")
            step += 1
            counts[number] = step
            if step == BEFORE:
                begun.wait()
            if ends.is_set():
                if len(hosts) > 1 or time.monotonic() > until[0]:
                    after -= 1
                else:
                    time.sleep(PAUSE)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    begun.wait()
    print("running", flush=True)
    sys.stdin.readline()
    until[0] = time.monotonic() + PATIENCE
    ends.set()
    for thread in threads:
        thread.join()
    written = sum(counts)
    session.default_fetch_size = 100
    rows = {row.k: row.v for row in session.execute("SELECT k, v FROM python_rows")}
    expected = {step * THREADS + number: step * THREADS + number + 1 for number in range(THREADS) for step in range(counts[number])}
    if rows != expected:
        differ = [key for key in expected if rows.get(key) != expected[key]]
        failures.append(f"{len(rows)} rows of {len(expected)}; these differ: {differ[:10]}")
    for number in range(THREADS):
        appended = session.execute("SELECT l FROM python_lists WHERE k = %s", (number,)).one().l
        if sorted(appended) != list(range(counts[number])):
            failures.append(f"list {number}: {len(appended)} elements for {counts[number]} steps")
    for failure in failures[:20]:
        print("FAILED", failure)
    print("FAILED" if failures else "ok", written, "steps;", ", ".join(f"{host} {count}" for host, count in sorted(hosts.items())))
    cluster.shutdown()
    sys.exit(bool(failures))


main()
