#!/usr/bin/env python3
"""Runs suites of drivers and applications against a server on 127.0.0.1:9042, and says what passed, what failed and why.

    tests/suites/run.py [--work DIR] [--source NAME=GIT] [--only PATTERN] SUITE...     --list names the suites

A suite is fetched at a fixed version: from the registry where the package carries its tests (Go), by git from its home
otherwise; --source takes another place, such as a local clone. Tests that need what one node cannot be are left out by
name (`left_out`); what fails is held against `reasons`: a pattern of the test's name or its message, and why. Failures that
no reason explains are printed whole, and the status is 1.

The applications' suites (`applications.py`) have a file in `baselines`: what each of their tests gave with Cassandra. A test
that fails there needs no reason here; one that passes there and does not run here counts as failed. With --record the
server on the port is a Cassandra (tests/tools/cassandra.sh start DIR --port 9042), and its answers become the baseline.

The suites want port 9042 of 127.0.0.1 for themselves. Where another server has it, run all in a network of its own:

    sudo unshare -n sh -c 'ip link set lo up; helenus serve --memory & tests/suites/run.py go'

after `run.py --fetch SUITE...`, which only downloads. With `--serve BINARY` no server need run: each module of a suite
(each file, for Node; the whole suite, for the others) gets a fresh `helenus serve --memory`, as its cluster manager would give it one.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

from applications import APPLICATIONS
from steps import Result, clone, must, run, served

HERE = pathlib.Path(__file__).resolve().parent

class Python:
    """The Python driver (pytest)."""

    git, tag = "https://github.com/apache/cassandra-python-driver", "3.29.2"
    modules = [
        "test_client_warnings", "test_concurrent", "test_connection", "test_control_connection", "test_custom_payload",
        "test_metadata", "test_metrics", "test_prepared_statements", "test_query", "test_query_paging", "test_routing",
        "test_row_factories", "test_types", "test_udts", "test_cluster", "test_custom_protocol_handler",
    ]
    left_out = "not (ClusterTests and test_connect_to_already_shutdown_cluster)"

    def fetch(self, work, git):
        clone(git, self.tag, work / "python-driver")
        venv = work / "python-venv"
        if not venv.exists():
            must([sys.executable, "-m", "venv", venv])
            wanted = [f"cassandra-driver=={self.tag}", "pytest", "pytest-timeout", "packaging", "scales", "pytz", "lz4", "ccm"]
            must([venv / "bin/pip", "-q", "install", *wanted])

    def run(self, work, only, serve):
        # The package that is installed, not the source beside the tests.
        tests = work / "python-driver"
        if (tests / "cassandra").exists():
            (tests / "cassandra").rename(tests / "cassandra-source")
        report = work / "python.xml"
        env = dict(os.environ, USE_CASS_EXTERNAL="1", CASSANDRA_VERSION="5.0.9", EVENT_LOOP_MANAGER="asyncore")
        for module in self.modules:
            report.unlink(missing_ok=True)
            command = [work / "python-venv/bin/python", "-m", "pytest", "-q", "--timeout", "120", "--show-capture=no",
                       f"--junitxml={report}", "-k", only or self.left_out, f"tests/integration/standard/{module}.py"]
            with served(serve, "datacenter1"), open(work / f"python-{module}.log", "w") as log:
                run(command, cwd=tests, env=env, stdout=log, stderr=subprocess.STDOUT)
            for case in xml.etree.ElementTree.parse(report).iter("testcase"):
                name = f"{case.get('classname').rsplit('.', 1)[-1]}.{case.get('name')}"
                bad = [found for found in case if found.tag in ("failure", "error")]
                skipped = [found for found in case if found.tag == "skipped"]
                if bad:
                    yield Result(name, "failed", f"{bad[0].get('message')}\n{bad[0].text}")
                else:
                    why = skipped[0].get("message") if skipped else ""
                    yield Result(name, "skipped" if skipped else "passed", why)


class Go:
    """gocql, from the Go module proxy."""

    git, tag = None, "v1.7.0"
    module = "github.com/gocql/gocql"

    def fetch(self, work, _git):
        into = work / "gocql"
        if into.exists():
            return
        env = dict(os.environ, GOFLAGS="-mod=mod")
        found = subprocess.check_output(["go", "mod", "download", "-json", f"{self.module}@{self.tag}"], env=env)
        must(["cp", "-r", json.loads(found)["Dir"], into])
        must(["chmod", "-R", "u+w", into])
        must(["go", "mod", "download"], cwd=into)
        must(["go", "vet", "-tags", "cassandra integration", "."], cwd=into)

    def run(self, work, only, serve):
        flags = ["-cluster=127.0.0.1", "-proto=4", "-rf=1", "-clusterSize=1", "-autowait=0s", "-gocql.cversion=5.0.9",
                 "-gocql.timeout=20s"]
        command = ["go", "test", "-json", "-timeout", "20m", "-tags", "cassandra integration", "-run", only or ".",
                   ".", *flags]
        with served(serve, "datacenter1"), open(work / "go.log", "w") as log:
            told = run(command, cwd=work / "gocql", stdout=subprocess.PIPE, stderr=log, text=True).stdout
        output, ended = collections.defaultdict(str), {}
        for line in told.splitlines():
            event = json.loads(line) if line.startswith("{") else {}
            name = event.get("Test")
            if name and "/" not in name:
                output[name] += event.get("Output", "")
                if event["Action"] in ("pass", "fail", "skip"):
                    ended[name] = event["Action"]
            elif name:
                output[name.split("/")[0]] += event.get("Output", "")
            else:
                output[""] += event.get("Output", "")
        words = {"pass": "passed", "fail": "failed", "skip": "skipped"}
        for name in filter(None, output):
            yield Result(name, words[ended.get(name, "fail")], output[name] + ("" if name in ended else output[""]))


class Node:
    """The Node driver (mocha), with `ccm` of this folder in the place of its cluster manager."""

    git, tag = "https://github.com/datastax/nodejs-driver", "v4.8.0"
    folder = "test/integration/short"
    left_out = r"simulator|graph|geometry|cloud|auth|search|ssl-tests|udf-tests"

    def fetch(self, work, git):
        clone(git, self.tag, work / "nodejs-driver")
        if not (work / "nodejs-driver/node_modules").exists():
            packages = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
            must(packages, cwd=work / "nodejs-driver")

    def run(self, work, only, serve):
        home = work / "nodejs-driver"
        env = dict(os.environ, CCM_VERSION="5.0.9", PATH=f"{HERE}:{os.environ['PATH']}")
        for file in sorted((home / self.folder).rglob("*-tests.js")):
            name = str(file.relative_to(home / self.folder))
            if re.search(self.left_out, name) or only and not re.search(only, name):
                continue
            command = ["node_modules/.bin/mocha", "-R", "json", "-t", "20000", "--exit", file]
            try:
                with served(serve, "dc1"):
                    told = run(command, cwd=home, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               timeout=240).stdout
            except subprocess.TimeoutExpired:
                yield Result(name, "failed", "suites: no end within 240 s")
                continue
            begin = told.find('{\n  "stats"')
            report = json.loads(told[begin:]) if begin >= 0 else {"tests": [], "failures": []}
            # A hook that fails takes its tests with it and is no test itself.
            failed = {test["fullTitle"]: test for test in report["failures"]}
            for title, test in failed.items():
                yield Result(f"{name}: {title}", "failed", json.dumps(test["err"]))
            for test in report["tests"]:
                if test["fullTitle"] not in failed:
                    yield Result(f"{name}: {test['fullTitle']}", "passed" if "duration" in test else "skipped", "")


class Java:
    """The Java driver (JUnit, through `java/pom.xml`), with `ccm` of this folder in the place of its cluster manager."""

    git, tag = "https://github.com/apache/cassandra-java-driver", "4.18.1"

    def maven(self, work, *goals):
        sources = work / "java-driver/integration-tests"
        return ["mvn", "-q", "-B", "-f", HERE / "java", f"-Dsuite.source={sources}", f"-Dsuite.build={work / 'java'}", *goals]

    def fetch(self, work, git):
        clone(git, self.tag, work / "java-driver")
        if not (work / "java").exists():
            # A run without tests brings what runs them.
            must(self.maven(work, "test", "-DskipTests=false", "-Dtest=SerializationIT"), env=self.env())

    def env(self):
        return dict(os.environ, PATH=f"{HERE}:{os.environ['PATH']}")

    # Its own groups: the first share a node, each of the others takes one for itself. The mapper's tests make a SASI index
    # unless the node is said to be older than those.
    parallel = "com.datastax.oss.driver.categories.ParallelizableTests"
    turns = [
        [f"-Dsuite.groups={parallel}"],
        [f"-Dsuite.left.out={parallel}", "-Dsuite.share=false"],
        ["-Dtest=com/datastax/oss/driver/mapper/*IT", "-Dsuite.version=3.3.0"],
    ]

    def run(self, work, only, serve):
        reports = work / "java/surefire-reports"
        for report in reports.glob("*.xml"):
            report.unlink()
        settings = ["--config", HERE / "java/node.yaml"]
        with served(serve, "dc1", *settings), open(work / "java.log", "w") as log:
            for turn in [[f"-Dtest={only}"]] if only else self.turns:
                run(self.maven(work, "-o", "surefire:test", *turn), env=self.env(), stdout=log, stderr=subprocess.STDOUT)
        for report in sorted(reports.glob("TEST-*.xml")):
            for case in xml.etree.ElementTree.parse(report).iter("testcase"):
                name = f"{case.get('classname').rsplit('.', 1)[-1]}.{case.get('name')}"
                bad = [found for found in case if found.tag in ("failure", "error")]
                skipped = [found for found in case if found.tag == "skipped"]
                message = f"{bad[0].get('message')}\n{bad[0].text}" if bad else ""
                yield Result(name, "failed" if bad else "skipped" if skipped else "passed", message)


SUITES = {"python": Python(), "go": Go(), "node": Node(), "java": Java(), **APPLICATIONS}


def reasons(suite):
    """Lines of `reasons`: suite, pattern, why; a blank of at least two spaces between."""
    for line in (HERE / "reasons").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            of, pattern, why = re.split(r"\s{2,}", line.strip(), maxsplit=2)
            if of in (suite, "all"):
                yield re.compile(pattern), why


def baseline(suite):
    """What Cassandra gave for each test of a suite, if that is written down: lines of an outcome and a test's name."""
    file = HERE / "baselines" / suite
    lines = file.read_text().splitlines() if file.exists() else []
    return {name: outcome for outcome, name in (line.split(" ", 1) for line in lines if not line.startswith("#"))}


def record(suite, results):
    """Writes the baseline of a suite, by a run against Cassandra."""
    head = f"# What Cassandra 5.0.9 gives for each test of {suite} {SUITES[suite].tag}: written by run.py --record.\n"
    lines = sorted(f"{result.outcome} {result.name}\n" for result in results)
    (HERE / "baselines" / suite).write_text(head + "".join(lines))


def tell(suite, results, verbose, whole):
    known, cassandra = list(reasons(suite)), baseline(suite)
    if whole:
        ran = {result.name for result in results}
        results += [Result(name, "failed", "did not run, and passes with Cassandra")
                    for name, outcome in cassandra.items() if outcome == "passed" and name not in ran]
    why, unexplained = collections.Counter(), []
    count = collections.Counter(result.outcome for result in results)
    for result in results:
        if result.outcome != "failed":
            continue
        text = f"{result.name}\n{result.message}"
        found = next((reason for pattern, reason in known if pattern.search(text)), None)
        if cassandra.get(result.name) == "failed":
            found = "fails with Cassandra 5.0.9 too"
        why[found] += found is not None
        if found is None:
            unexplained.append(result)
        if verbose:
            print(f"{result.name}: {found or 'NOT EXPLAINED'}")
    for result in unexplained:
        print(f"--- {result.name}\n{result.message[-2500:]}")
    print(f"| {suite} {SUITES[suite].tag} | {count['passed']} | {count['failed']} | {count['skipped']} | |")
    for reason, times in why.most_common():
        if reason:
            print(f"| | | {times} | | {reason} |")
    if unexplained:
        print(f"| | | {len(unexplained)} | | not explained |")
    return not unexplained


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="+", choices=SUITES)
    listed = "\n".join(f"{name}  {' '.join(suite.__doc__.split())}" for name, suite in SUITES.items())
    parser.add_argument("--list", action="version", version=listed, help="only name the suites")
    parser.add_argument("--work", default="/tmp/helenus-suites", type=pathlib.Path)
    parser.add_argument("--source", action="append", default=[], metavar="NAME=GIT")
    parser.add_argument("--only")
    parser.add_argument("--serve", metavar="BINARY", type=pathlib.Path, help="start a fresh server of this binary when one is due")
    parser.add_argument("--fetch", action="store_true", help="only download")
    parser.add_argument("--record", action="store_true", help="write what this server, a Cassandra, gives as the baseline")
    parser.add_argument("--verbose", action="store_true", help="print every test that failed")
    asked = parser.parse_args()
    if asked.record and (asked.serve or asked.only):
        parser.error("--record takes a whole run against a Cassandra that runs already: leave out --serve and --only")
    asked.work.mkdir(parents=True, exist_ok=True)
    sources = dict(source.split("=", 1) for source in asked.source)
    explained = True
    if not asked.fetch:
        print("| suite | passed | failed | skipped | why |\n|---|---|---|---|---|")
    for name in asked.suites:
        suite = SUITES[name]
        suite.fetch(asked.work, sources.get(name, suite.git))
        if not asked.fetch:
            results = list(suite.run(asked.work, asked.only, asked.serve))
            if asked.record:
                record(name, results)
            explained &= tell(name, results, asked.verbose, not asked.only)
    sys.exit(0 if explained else 1)


if __name__ == "__main__":
    main()
