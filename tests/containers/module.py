"""The Cassandra module of Testcontainers for Python, as it is: start, wait for its log line, connect, one query."""

import sys

from cassandra.cluster import Cluster, DCAwareRoundRobinPolicy
from testcontainers.community.cassandra import CassandraContainer

with CassandraContainer(f"cassandra:{sys.argv[1]}") as container:
    policy = DCAwareRoundRobinPolicy(container.get_local_datacenter())
    with Cluster(container.get_contact_points(), load_balancing_policy=policy, protocol_version=5) as cluster:
        row = cluster.connect().execute("SELECT release_version FROM system.local").one()
        assert row.release_version == sys.argv[1], row
