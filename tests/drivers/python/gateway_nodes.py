"""The Python driver with `helenus serve --gateway .. --show-nodes`: HOST:PORT NODES [kill].

It must go to the nodes by itself. Prints `ok CASE` for each case. With `kill` it prints `kill` at the end; a line on its input says
that a node is gone, and it looks for the event that tells so.
"""

import os
import sys
import time

from cassandra import ConsistencyLevel, InvalidRequest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import DCAwareRoundRobinPolicy, TokenAwarePolicy
from cassandra.query import SimpleStatement

KEYSPACE = "gateway_nodes"
ROWS = 400


def equal(found, expected, what=""):
    if found != expected:
        raise AssertionError(f"{what}: found {found!r}, expected {expected!r}")


def wait_for(true, what):
    until = time.monotonic() + 60
    while not true():
        if time.monotonic() > until:
            raise AssertionError(f"{what}: not within 60 s")
        time.sleep(0.05)


class Cases:
    def __init__(self, address, nodes):
        self.host, self.nodes, self.told = address.rsplit(":", 1)[0], nodes, []
        profile = ExecutionProfile(
            load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy("datacenter1")),
            consistency_level=ConsistencyLevel.QUORUM, request_timeout=60,
        )
        self.cluster = Cluster(
            [self.host], port=int(address.rsplit(":", 1)[1]), connect_timeout=30, control_connection_timeout=30,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        )
        self.session = self.cluster.connect()
        control = self.cluster.control_connection
        passed_on = control._handle_status_change
        control._handle_status_change = lambda event: (self.told.append(event), passed_on(event))

    def at_gateway(self, statement, values=None):
        gateway = next(host for host in self.cluster.metadata.all_hosts() if host.endpoint.address == self.host)
        return self.session.execute(statement, values, host=gateway)

    def peers(self):
        # A host is up a moment before the session has connections to it.
        up = lambda: sum(bool(host.is_up) and host in self.session.get_pool_state() for host in self.cluster.metadata.all_hosts())
        wait_for(lambda: up() == self.nodes + 1, "connections to the nodes and the gateway")
        owners = set(self.cluster.metadata.token_map.token_to_host_owner.values())
        equal(len(owners), self.nodes, "owners of tokens")
        ask = self.at_gateway
        rows = list(ask("SELECT * FROM system.peers"))
        equal(len(rows), self.nodes, "peers")

        def is_agreed():
            shown = {row.schema_version for row in ask("SELECT schema_version FROM system.peers")}
            return shown == {ask("SELECT schema_version FROM system.local").one()[0]}

        # Other clients make tables at this moment.
        wait_for(is_agreed, "one version of the schema")
        for row in ask("SELECT peer, peer_port, native_address, host_id FROM system.peers_v2"):
            text = "SELECT host_id, tokens FROM system.peers_v2 WHERE peer = %s AND peer_port = %s"
            found = list(ask(text, (row.peer, row.peer_port)))
            equal([one.host_id for one in found], [row.host_id], "a node by its key")
            prepared = self.session.prepare(text.replace("%s", "?"))
            equal(list(ask(prepared, (row.peer, row.peer_port))), found, "by a prepared statement")

    def routes(self):
        run = self.session.execute
        run(f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
        run(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
        run(f"CREATE TABLE {KEYSPACE}.t (k int PRIMARY KEY, v text)")
        self.session.set_keyspace(KEYSPACE)
        insert = self.session.prepare("INSERT INTO t (k, v) VALUES (?, ?)")
        qualified = self.session.prepare(f"SELECT v FROM {KEYSPACE}.t WHERE k = ?")
        used = set()
        for k in range(ROWS):
            bound = insert.bind((k, f"v{k}"))
            future = self.session.execute_async(bound)
            future.result()
            owners = {host.endpoint for host in self.cluster.metadata.get_replicas(KEYSPACE, bound.routing_key)}
            equal(future.coordinator_host.endpoint in owners, True, f"{future.coordinator_host} for {owners}")
            used.add(future.coordinator_host.endpoint)
            equal(run(qualified, (k,)).one().v, f"v{k}")
        equal(len(used), self.nodes, "coordinators")

    def pages(self):
        # Each page comes from the next host in turn: nodes and the gateway.
        used, found = set(), []
        future = self.session.execute_async(SimpleStatement("SELECT k FROM t", fetch_size=20))
        result = future.result()
        while True:
            used.add(future.coordinator_host.endpoint)
            found += [row.k for row in result.current_rows]
            if not result.has_more_pages:
                break
            result.fetch_next_page()
        equal(sorted(found), list(range(ROWS)))
        statement = SimpleStatement("SELECT k FROM t", fetch_size=20)
        state, found = None, []
        while True:
            future = self.session.execute_async(statement, paging_state=state)
            result = future.result()
            used.add(future.coordinator_host.endpoint)
            found += [row.k for row in result.current_rows]
            state = result.paging_state
            if state is None:
                break
        equal(sorted(found), list(range(ROWS)), "with states handed on")
        equal(len(used), self.nodes + 1, "hosts that gave pages")

    def refused(self):
        for text in ("SELECT count(*) FROM system.peers", "SELECT peer FROM system.peers WHERE peer IN ('127.0.0.1')"):
            try:
                self.at_gateway(text)
                raise AssertionError(f"accepted: {text}")
            except InvalidRequest as error:
                equal("answers system.peers" in str(error), True, str(error))

    def kill(self):
        print("kill", flush=True)
        sys.stdin.readline()
        wait_for(lambda: any(event["change_type"] == "DOWN" for event in self.told), "the event of a node's end")


def main():
    cases = Cases(sys.argv[1], int(sys.argv[2]))
    names = ["peers", "routes", "pages", "refused"] + sys.argv[3:]
    status = 0
    for name in names:
        try:
            getattr(cases, name)()
            print(f"ok {name}", flush=True)
        except Exception as error:
            print(f"FAILED {name}: {error!r}", flush=True)
            status = 1
    if status == 0:
        cases.session.execute(f"DROP KEYSPACE {KEYSPACE}")
        print("ok", flush=True)
    sys.stdout.flush()
    os._exit(status)


main()
