"""Logins and permissions by the Python driver: see ../README.md for arguments.

The server has PasswordAuthenticator and CassandraAuthorizer, and the role cassandra its default password.
"""

import sys
import traceback

from cassandra import ConsistencyLevel, Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.policies import RoundRobinPolicy

KEYSPACE = "python_logins"


def connect(address, user=None, password=None, version=4):
    host, port = address.rsplit(":", 1)
    profile = ExecutionProfile(
        load_balancing_policy=RoundRobinPolicy(), consistency_level=ConsistencyLevel.ONE, request_timeout=30
    )
    provider = PlainTextAuthProvider(user, password) if user else None
    cluster = Cluster(
        [host],
        port=int(port),
        auth_provider=provider,
        protocol_version=version,
        connect_timeout=20,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
    )
    try:
        return cluster, cluster.connect()
    except Exception:
        cluster.shutdown()
        raise


def refused(kind, text, call):
    """`call` must raise `kind` with `text` in its message."""
    try:
        call()
    except kind as error:
        if text not in str(error):
            raise AssertionError(f"the message of {error!r} lacks {text!r}") from None
    else:
        raise AssertionError(f"accepted, but expected {kind.__name__} with {text!r}")


def login_case(address, session):
    for version in (3, 4, 5):
        cluster, own = connect(address, "cassandra", "cassandra", version)
        assert own.execute("SELECT role FROM system_auth.roles WHERE role = 'cassandra'").one().role == "cassandra"
        cluster.shutdown()


def wrong_case(address, session):
    text = "Provided username nobody and/or password are incorrect"
    refused(NoHostAvailable, text, lambda: connect(address, "nobody", "x"))
    text = "Provided username cassandra and/or password are incorrect"
    refused(NoHostAvailable, text, lambda: connect(address, "cassandra", "x"))


def none_case(address, session):
    refused(NoHostAvailable, "Remote end requires authentication", lambda: connect(address))


def roles_case(address, session):
    session.execute("CREATE ROLE python_reader WITH PASSWORD = 'pw' AND LOGIN = true")
    session.execute("CREATE ROLE python_readers")
    session.execute("GRANT python_readers TO python_reader")
    session.execute(f"GRANT SELECT ON KEYSPACE {KEYSPACE} TO python_readers")
    cluster, own = connect(address, "python_reader", "pw")
    assert own.execute(f"SELECT v FROM {KEYSPACE}.t WHERE k = 1").one().v == 2
    text = "has no MODIFY permission on <table"
    refused(Unauthorized, text, lambda: own.execute(f"INSERT INTO {KEYSPACE}.t (k) VALUES (3)"))
    refused(Unauthorized, "has no CREATE permission", lambda: own.execute(f"CREATE TABLE {KEYSPACE}.x (k int PRIMARY KEY)"))
    insert = own.prepare(f"INSERT INTO {KEYSPACE}.t (k, v) VALUES (?, ?)")
    refused(Unauthorized, text, lambda: own.execute(insert, (3, 4)))
    session.execute(f"GRANT MODIFY ON {KEYSPACE}.t TO python_reader")
    own.execute(insert, (3, 4))
    session.execute(f"REVOKE MODIFY ON {KEYSPACE}.t FROM python_reader")
    refused(Unauthorized, text, lambda: own.execute(insert, (5, 6)))
    cluster.shutdown()


def metadata_case(address, session):
    """A role without rights connects all the same: the driver reads the schema of the cluster."""
    session.execute("CREATE ROLE python_nobody WITH PASSWORD = 'pw' AND LOGIN = true")
    cluster, own = connect(address, "python_nobody", "pw")
    assert "t" in cluster.metadata.keyspaces[KEYSPACE].tables
    refused(Unauthorized, "has no SELECT permission", lambda: own.execute(f"SELECT * FROM {KEYSPACE}.t"))
    refused(Unauthorized, "", lambda: own.execute("SELECT * FROM system_auth.roles"))
    cluster.shutdown()


CASES = {
    "login": login_case,
    "wrong": wrong_case,
    "none": none_case,
    "roles": roles_case,
    "metadata": metadata_case,
}


def main(address, names):
    cluster, session = connect(address, "cassandra", "cassandra")
    session.execute(f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
    for role in ("python_reader", "python_readers", "python_nobody"):
        session.execute(f"DROP ROLE IF EXISTS {role}")
    session.execute(
        f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
    session.execute(f"CREATE TABLE {KEYSPACE}.t (k int PRIMARY KEY, v int)")
    session.execute(f"INSERT INTO {KEYSPACE}.t (k, v) VALUES (1, 2)")
    failed = False
    for name in names or CASES:
        try:
            CASES[name](address, session)
            print(f"ok {name}", flush=True)
        except Exception as error:
            traceback.print_exc()
            print(f"FAILED {name}: {error}", flush=True)
            failed = True
    session.execute(f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
    cluster.shutdown()
    print("failed" if failed else "ok")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
