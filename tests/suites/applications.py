"""The applications' suites: tests that others wrote of what they keep in Cassandra, from the Go module proxy."""

import collections
import json
import os
import pathlib
import subprocess
import sys

from steps import Result, must, run, served

REQUIREMENTS = pathlib.Path(__file__).resolve().parent.parent / "drivers/python/requirements.txt"


class GoProgram:
    """A package's tests, compiled once, by one compiler at a time: these programs are large."""

    git = None
    environment = {}

    def fetch(self, work, _git):
        self.tests = work / "bin" / f"{self.name}.test"
        into = work / self.name
        if self.tests.exists():
            return
        env = dict(os.environ, GOFLAGS="-mod=mod")
        found = subprocess.check_output(["go", "mod", "download", "-json", f"{self.module}@{self.tag}"], env=env)
        if not into.exists():
            must(["cp", "-r", json.loads(found)["Dir"], into])
            must(["chmod", "-R", "u+w", into])
        must(["go", "mod", "download"], cwd=into)
        build = ["go", "test", "-c", "-p", "1", "-vet=off", "-ldflags=-w", "-o", self.tests, f"./{self.package}"]
        must(build, cwd=into)

    def prepare(self, work):
        """What is to be there before the tests begin."""

    def run(self, work, only, serve):
        folder = work / self.name / self.package
        command = ["go", "tool", "test2json", "-t", self.tests, "-test.v=test2json", "-test.timeout=20m",
                   "-test.run", only or self.wanted]
        with served(serve, "datacenter1"), open(work / f"{self.name}.log", "w") as log:
            self.prepare(work)
            env = dict(os.environ, **self.environment)
            told = run(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=log, text=True).stdout
        yield from outcomes(told)


def outcomes(told):
    """The tests that have no parts, and those that failed though none of their parts did."""
    output, ended, lost = collections.defaultdict(str), {}, ""
    for line in told.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        name = event.get("Test")
        if not name:
            lost += event.get("Output", "")
            continue
        output[name] += event.get("Output", "")
        if event["Action"] in ("pass", "fail", "skip"):
            ended[name] = event["Action"]
    words = {"pass": "passed", "fail": "failed", "skip": "skipped"}
    outcome = {name: words[ended.get(name, "fail")] for name in output}
    whole = {name.rsplit("/", depth)[0] for name in output for depth in range(1, name.count("/") + 1)}
    broken = {name.rsplit("/", depth)[0] for name in output if outcome[name] == "failed"
              for depth in range(1, name.count("/") + 1)}
    for name in output:
        if name not in whole or outcome[name] == "failed" and name not in broken:
            yield Result(name, outcome[name], output[name] + ("" if name in ended else lost))


class Temporal(GoProgram):
    """Temporal's persistence tests of Cassandra; each makes its keyspace of Temporal's own schema."""

    name, module, tag = "temporal", "go.temporal.io/server", "v1.32.0"
    package, wanted = "common/persistence/tests", "Cassandra"
    environment = {"CASSANDRA_SEEDS": "127.0.0.1", "CASSANDRA_PORT": "9042"}


class Jaeger(GoProgram):
    """Jaeger's storage integration test with Cassandra; its own script makes the keyspace, through cqlsh."""

    name, module, tag = "jaeger", "github.com/jaegertracing/jaeger", "v1.76.0"
    package, wanted = "internal/storage/integration", "TestCassandraStorage"
    environment = {"STORAGE": "cassandra", "CASSANDRA_USERNAME": "cassandra", "CASSANDRA_PASSWORD": "cassandra"}

    def fetch(self, work, git):
        super().fetch(work, git)
        home = work / "cqlsh-venv"
        if not (home / "bin/cqlsh").exists():
            must([sys.executable, "-m", "venv", home])
            must([home / "bin/pip", "-q", "install", "-r", REQUIREMENTS])

    def prepare(self, work):
        script = work / "jaeger/internal/storage/v1/cassandra/schema/create.sh"
        env = dict(os.environ, MODE="test", DATACENTER="dc1", KEYSPACE="jaeger_v1_dc1")
        schema = subprocess.check_output(["bash", script], env=env, stderr=subprocess.DEVNULL)
        must([work / "cqlsh-venv/bin/cqlsh", "127.0.0.1", "9042"], input=schema)


APPLICATIONS = {"temporal": Temporal(), "jaeger": Jaeger()}
