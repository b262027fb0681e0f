"""cqlsh, as a person at a terminal uses it: see ../README.md. Its cases are its own:

`session`   the README's session: DDL, writes, reads, the table that cqlsh draws
`messages`  what it prints for refused statements, and a warning
`consistency` CONSISTENCY, TRACING ON and EXPAND
`copy`      COPY TO and COPY FROM, which open connections of their own and use the token map
`describe`  DESCRIBE, which the server answers
"""

import os
import subprocess
import sys
import tempfile

KEYSPACE = "cqlsh_driver"


def cqlsh(address, statements, status=0):
    host, port = address.rsplit(":", 1)
    program = os.path.join(os.path.dirname(sys.executable), "cqlsh")
    env = {**os.environ, "CQLSH_HOST": "", "HOME": tempfile.gettempdir(), "COLUMNS": "200"}
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([sys.executable, program, "--no-color", *access(folder), host, port, "-e", statements.strip()],
                             capture_output=True, text=True, env=env, timeout=120)
    if run.returncode != status:
        raise AssertionError(f"status {run.returncode}: {run.stdout}{run.stderr}")
    lines = (run.stdout + run.stderr).splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("WARNING: cqlsh was built against"))


def access(folder):
    """The options of TLS and of a login, where the environment asks for them: see ../README.md."""
    options = []
    if "DRIVER_CAFILE" in os.environ:
        rc = os.path.join(folder, "cqlshrc")
        with open(rc, "w") as file:
            print("[ssl]", f"certfile = {os.environ['DRIVER_CAFILE']}", "validate = true", sep="\n", file=file)
            if "DRIVER_CERT" in os.environ:
                print(f"usercert = {os.environ['DRIVER_CERT']}", f"userkey = {os.environ['DRIVER_KEY']}", sep="\n", file=file)
        options += ["--ssl", "--cqlshrc", rc]
    if "DRIVER_USER" in os.environ:
        options += ["-u", os.environ["DRIVER_USER"], "-p", os.environ["DRIVER_PASSWORD"]]
        options += ["--insecure-password-without-warning"]
    return options


def within(output, *expected):
    """Each expected text must stand in the output; blanks at the ends of lines do not count."""
    output = "\n".join(line.rstrip() for line in output.splitlines())
    for text in expected:
        if text not in output:
            raise AssertionError(f"no {text!r} in:\n{output}")


def session_case(address):
    output = cqlsh(address, f"""
        CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}};
        USE {KEYSPACE};
        DROP TABLE IF EXISTS timeline;
        CREATE TABLE timeline (user text, at timestamp, event text, PRIMARY KEY (user, at)) WITH CLUSTERING ORDER BY (at DESC);
        INSERT INTO timeline (user, at, event) VALUES ('foo', '2026-11-21 09:30:00+0000', 'login');
        INSERT INTO timeline (user, at, event) VALUES ('foo', '2026-11-21 09:31:00+0000', 'mail');
        SELECT * FROM timeline WHERE user = 'foo' LIMIT 2;
        SELECT count(*) FROM timeline;
    """)
    within(output, """\
 user | at                              | event
------+---------------------------------+-------
  foo | 2026-11-21 09:31:00.000000+0000 |  mail
  foo | 2026-11-21 09:30:00.000000+0000 | login

(2 rows)
""", " count\n-------\n     2\n\n(1 rows)")
    within(cqlsh(address, "SHOW VERSION"), "[cqlsh 6.2.2 | Cassandra 5.0.9 | CQL spec 3.4.7 | Native protocol v5]")
    within(cqlsh(address, f"SELECT event FROM {KEYSPACE}.timeline WHERE user = 'none'"), "(0 rows)")


def messages_case(address):
    within(cqlsh(address, "SELECT * FROM absent.absent", status=2),
           'InvalidRequest: Error from server: code=2200 [Invalid query] message="keyspace absent does not exist"')
    within(cqlsh(address, "SELECT FROM WHERE", status=2), "SyntaxException: line 1:")
    within(cqlsh(address, "SELECT count(*) FROM system.local"),
           "Warnings :\nAggregation query used without partition key")


def consistency_case(address):
    within(cqlsh(address, "CONSISTENCY LOCAL_QUORUM; SELECT key FROM system.local;"),
           "Consistency level set to LOCAL_QUORUM.", " local\n")
    within(cqlsh(address, "TRACING ON; SELECT key FROM system.local;"), "Tracing session:", "Request complete")
    within(cqlsh(address, "EXPAND ON; SELECT key, cluster_name FROM system.local;"), "@ Row 1", " key          | local")


def copy_case(address):
    lines = "".join(f"{k},{c},value {k} {c}\n" for k in range(10) for c in range(100))
    with tempfile.TemporaryDirectory() as folder:
        before, after = os.path.join(folder, "before.csv"), os.path.join(folder, "after.csv")
        with open(before, "w") as file:
            file.write(lines)
        output = cqlsh(address, f"""
            CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}};
            DROP TABLE IF EXISTS {KEYSPACE}.copied;
            CREATE TABLE {KEYSPACE}.copied (k int, c int, v text, PRIMARY KEY (k, c));
            COPY {KEYSPACE}.copied (k, c, v) FROM '{before}' WITH NUMPROCESSES = 1;
            COPY {KEYSPACE}.copied (k, c, v) TO '{after}' WITH NUMPROCESSES = 1;
        """)
        within(output, "1000 rows imported from 1 files", "1000 rows exported to 1 files")
        with open(after) as file:
            if sorted(file.read().split()) != sorted(lines.split()):
                raise AssertionError("the copy differs")


def describe_case(address):
    cqlsh(address, f"""
        CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}};
        DROP TABLE IF EXISTS {KEYSPACE}.told;
        CREATE TABLE {KEYSPACE}.told (k int, c text, s int static, v blob, PRIMARY KEY (k, c))
            WITH CLUSTERING ORDER BY (c DESC) AND comment = 'told here';
    """)
    within(cqlsh(address, "DESCRIBE KEYSPACES"), KEYSPACE, "system_schema")
    within(cqlsh(address, f"USE {KEYSPACE}; DESCRIBE TABLES"), "told")
    within(cqlsh(address, "DESCRIBE CLUSTER"), "Partitioner: Murmur3Partitioner")
    output = cqlsh(address, f"DESCRIBE TABLE {KEYSPACE}.told")
    within(output, f"""\
CREATE TABLE {KEYSPACE}.told (
    k int,
    c text,
    s int static,
    v blob,
    PRIMARY KEY (k, c)
) WITH CLUSTERING ORDER BY (c DESC)
""", "    AND comment = 'told here'")
    # What DESCRIBE prints is what CREATE reads.
    cqlsh(address, f"DROP TABLE {KEYSPACE}.told; {output}")
    if cqlsh(address, f"DESCRIBE TABLE {KEYSPACE}.told") != output:
        raise AssertionError("the table made from its description describes itself otherwise")


CASES = {name.removesuffix("_case"): case for name, case in list(globals().items()) if name.endswith("_case")}


def main():
    address, wanted = sys.argv[1], sys.argv[2:] or list(CASES)
    failed = 0
    for name in wanted:
        try:
            CASES[name](address)
            print("ok", name, flush=True)
        except Exception as error:  # one broken case must not hide the others
            failed += 1
            print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
    cqlsh(address, f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
    if failed:
        sys.exit(1)
    print("ok")


main()
