"""The chores of a day for bench/soak.py: what a server meets besides its clients, hour by hour.

`hour` runs beside the load of that hour, `between` while no client is there, `end` takes everything back and says what has not
gone back to where it began: segments of the log, files beside those of the schema, bytes, memory, descriptors.
"""

import shutil
import subprocess
import time

KEYSPACE = "soak_day"
# The engine flushes beyond 32 closed segments; with the active one, two made in advance and one that is filled meanwhile.
SEGMENTS_MAX = 36
# How long the upkeep may take to come to rest.
REST_MAX = 120


class Day:
    def __init__(self, server):
        self.server = server
        self.export = server.folder / "export"
        self.acknowledged = 0
        self.problems = []
        server.shell(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}};"
                     f"CREATE TABLE {KEYSPACE}.fed (k int, c int, v text, PRIMARY KEY (k, c)) WITH cdc = true AND gc_grace_seconds = 0;"
                     f"CREATE TABLE {KEYSPACE}.imported (k int PRIMARY KEY, v text);")
        self.insert("imported", "k, v", [f"{row}, 'imported {row}'" for row in range(200)])
        server.run("export", self.export, KEYSPACE, "imported")
        self.consumer("reader", "--from", "now")
        self.written = 0
        self.began = None

    def insert(self, table, columns, rows):
        for begin in range(0, len(rows), 100):
            self.server.shell("".join(f"INSERT INTO {KEYSPACE}.{table} ({columns}) VALUES ({row});"
                                      for row in rows[begin:begin + 100]))

    def consumer(self, name, *words):
        """The changes that a consumer gets."""
        lines = self.server.run("changes", f"{KEYSPACE}.fed", "--consumer", name, "--json", *words)
        return len(lines.splitlines())

    def count(self, table):
        text = self.server.shell(f"SELECT count(*) FROM {KEYSPACE}.{table}")
        return int(next(line for line in text.splitlines() if line.strip().isdigit()))

    def expect(self, what, found, wanted):
        if found != wanted:
            self.problems.append(f"{what}: {found} instead of {wanted}")

    def hour(self, hour):
        """The chores beside the load of an hour."""
        self.feed(hour)
        self.table(hour)
        if hour % 2 == 0:
            self.server.admin("flush")
        if hour % 4 == 1:
            self.server.admin("compact", KEYSPACE)
        if hour % 3 == 0:
            self.import_again()
        self.server.admin("snapshot", "-t", f"hour{hour}", "soak")
        if hour % 5 != 0:
            self.server.admin("clearsnapshot", "-t", f"hour{hour}", "soak")

    def feed(self, hour):
        rows = [f"{hour}, {row}, '{'v' * (row % 400)}'" for row in range(200)]
        self.insert("fed", "k, c, v", rows)
        self.written += len(rows)
        if hour % 6 == 0:
            self.consumer("late", "--from", "now")
        if hour % 6 == 4:
            self.consumer("late", "--drop-consumer")
        # The reader falls behind for two hours of three.
        if hour % 3 == 2:
            self.acknowledge()

    def acknowledge(self):
        self.expect("changes of the reader", self.consumer("reader", "--ack-all"), self.written - self.acknowledged)
        self.acknowledged = self.written

    def table(self, hour):
        """A table is made and filled, the one of the hour before is dropped."""
        self.server.shell(f"CREATE TABLE {KEYSPACE}.hour{hour} (k int PRIMARY KEY, v text);")
        self.insert(f"hour{hour}", "k, v", [f"{row}, '{'d' * 200}'" for row in range(300)])
        if hour % 2 == 0:
            self.server.admin("flush", KEYSPACE, f"hour{hour}")
        if hour > 0:
            self.server.shell(f"DROP TABLE {KEYSPACE}.hour{hour - 1};")

    def import_again(self):
        self.server.shell(f"TRUNCATE {KEYSPACE}.imported;")
        self.expect("rows after TRUNCATE", self.count("imported"), 0)
        self.server.run("import", self.export)
        self.expect("rows of an import", self.count("imported"), 200)

    def between(self, hour):
        """What ends connections, while there are none."""
        if hour == 7:
            self.server.stop()
            self.server.start()
        if hour == 15:
            self.server.kill()
            self.server.start()
        if self.began is None and hour >= 1:
            self.began = self.server.figures()

    def end(self):
        """Takes everything back; the problems."""
        self.acknowledge()
        for name in ("reader", "late"):
            # The late one may have left.
            subprocess.run([self.server.binary, "changes", f"{KEYSPACE}.fed", "--consumer", name, "--drop-consumer", "--data",
                            self.server.folder / "data"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        self.server.admin("clearsnapshot", "--all")
        self.server.shell(f"DROP KEYSPACE {KEYSPACE};")
        shutil.rmtree(self.export)
        self.server.admin("flush")
        began = time.monotonic()
        while (left := self.left()) and time.monotonic() - began < REST_MAX:
            time.sleep(1)
        return self.problems + left

    def left(self):
        """What is not where it began."""
        data, now, left = self.server.folder / "data", self.server.figures(), []
        segments = len(list((data / "commitlog").glob("helenus-*.log")))
        if segments > SEGMENTS_MAX:
            left.append(f"the log has {segments} segments")
        kept = list((data / "changes").glob("kept-*")) + list((data / "changes").glob("*.new"))
        if kept:
            left.append(f"{len(kept)} files of changes are kept for nobody")
        if (data / "import").exists() and (names := [path.name for path in (data / "import").iterdir()]):
            left.append(f"left of imports: {names}")
        if (data / "data" / KEYSPACE).exists() and (names := [path.name for path in (data / "data" / KEYSPACE).iterdir()]):
            left.append(f"left of dropped tables: {names}")
        if logs := [path.name for path in (data / "data").rglob("*_txn_*") if now["helenus_compactions_pending"] == 0]:
            left.append(f"left of transactions: {logs}")
        for name, share, least in (("rss", 1.25, 64 << 20), ("files", 1.2, 24), ("disk", 1.3, 64 << 20)):
            if self.began and now[name] > self.began[name] * share and now[name] > self.began[name] + least:
                left.append(f"{name} went from {self.began[name]:,.0f} to {now[name]:,.0f}")
        return left
