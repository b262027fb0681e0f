#!/usr/bin/env python3
"""Runs the container image under podman, without a daemon: what it promises, then modules of Testcontainers.

    tests/containers/run.py FOLDER WORK [NAME...]       NAME: image, foreign, bad, scylla, python, node, go, spring, java, volumes

FOLDER is that of `cargo xtask image`; with --arm64, `foreign` runs the image for that processor by Debian's qemu-user-static. Without a name, all run but the last two: `java` takes the tests of Testcontainers' modules
from a clone of testcontainers-java that TESTCONTAINERS_JAVA names, `volumes` starts real nodes of Cassandra. WORK keeps podman's
store and the modules, which come from their registries at the versions of modules.json. Needs root, Python 3 with venv, Node.js,
Go, a JDK 17 with Maven, and the Debian packages of PACKAGES. `cargo xtask image --test` calls it.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = "podman runc iptables netavark aardvark-dns"
IMAGE = "helenus"
SCYLLA = "helenus-scylla"
# Tags that the modules' own tests name, besides the release.
TAGS = ["latest", "5", "4.1.3", "4.1.1", "3.11.15", "3.11.2", "3.0.15", "2.2.11"]
SCYLLA_TAGS = ["6.2", "6.2.2"]
DEFAULT = ["image", "foreign", "bad", "scylla", "python", "node", "node_scylladb", "go", "spring"]
# runc and limits that a container inside a container may have.
SETTINGS = """[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
[network]
network_backend = "netavark"
"""
READY = "Startup complete"
STRATEGY = "{'class': 'SimpleStrategy', 'replication_factor': 1}"


class Podman:
    """Podman with a store of its own, and its service that speaks Docker's API."""

    def __init__(self, work):
        self.work, self.socket = work, work / "podman.sock"
        (work / "containers.conf").write_text(SETTINGS)
        self.environment = os.environ | {"CONTAINERS_CONF": str(work / "containers.conf")}
        store = ["--storage-driver", "vfs", "--root", str(work / "store"), "--runroot", str(work / "run")]
        self.command = ["podman", *store]

    def run(self, *words, check=True, **options):
        done = subprocess.run(
            [*self.command, *words], env=self.environment, text=True, capture_output=True, check=False, **options
        )
        if check and done.returncode:
            raise AssertionError(f"podman {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def serve(self):
        """Starts the service, and runs health checks in place of systemd's timers."""
        self.service = subprocess.Popen(
            [*self.command, "system", "service", "--time=0", f"unix://{self.socket}"],
            env=self.environment,
            stderr=subprocess.DEVNULL,
        )
        threading.Thread(target=self.check_health, daemon=True).start()

    def check_health(self):
        while self.service.poll() is None:
            for name in self.run("ps", "--quiet", check=False).split():
                self.run("healthcheck", "run", name, check=False)
            time.sleep(1)

    def stop(self):
        self.run("rm", "--force", "--all", check=False)
        self.service.terminate()
        self.service.wait()

    def logs(self, name):
        done = subprocess.run([*self.command, "logs", name], env=self.environment, capture_output=True, text=True)
        return done.stdout + done.stderr

    def start(self, *words, name="it", ready=READY, command=(), image=IMAGE):
        """Starts a container, waits for a text in its log, and returns the milliseconds."""
        self.run("rm", "--force", name, check=False)
        begin = time.monotonic()
        self.run("run", "--detach", "--name", name, *words, image, *command)
        while ready not in (log := self.logs(name)):
            if "running" not in self.run("inspect", "--format", "{{.State.Status}}", name) and ready not in self.logs(name):
                raise AssertionError(f"the container ended before '{ready}':\n{log}")
            if time.monotonic() - begin > 60:
                raise AssertionError(f"no '{ready}' in a minute:\n{log}")
            time.sleep(0.02)
        return (time.monotonic() - begin) * 1000

    def refused(self, *words, reason, image=IMAGE, command=()):
        """Runs a container that must end by itself with an error, and say why."""
        begin = time.monotonic()
        self.run("rm", "--force", "refused", check=False)
        try:
            self.run("run", "--name", "refused", *words, image, *command, check=False, timeout=60)
        except subprocess.TimeoutExpired as error:
            log = self.logs("refused")
            self.run("rm", "--force", "refused", check=False)
            raise AssertionError(f"it went on:\n{log}") from error
        state = self.run("inspect", "--format", "{{.State.ExitCode}}", "refused")
        log = self.logs("refused")
        assert state not in ("0", "139"), f"it ended with {state}:\n{log}"
        has(log, reason)
        print(f"    {(time.monotonic() - begin) * 1000:.0f} ms: {next(line for line in log.splitlines() if reason in line).strip()}")

    def cqlsh(self, statement, name="it", user="cassandra", password="cassandra"):
        return self.run("exec", name, "cqlsh", "-u", user, "-p", password, "-e", statement)


def has(text, *parts):
    for part in parts:
        assert part in text, f"'{part}' is missing in:\n{text}"


def image_tests(podman, work):
    """Each is one promise of docs/book/containers.md."""

    def it_answers_as_soon_as_it_says_so():
        times = sorted(podman.start("--env", "CASSANDRA_CLUSTER_NAME=Mine") for _ in range(5))
        print(f"    start to '{READY}', podman included: {', '.join(f'{ms:.0f}' for ms in times)} ms")
        has(podman.logs("it"), "Starting listening for CQL clients on /0.0.0.0:9042")
        has(podman.cqlsh("SELECT bootstrapped, cluster_name FROM system.local"), "COMPLETED", "Mine")

    def data_center_and_rack_follow_the_snitch():
        where = "SELECT data_center, rack FROM system.local"
        podman.start("--env", "CASSANDRA_DC=dc7", "--env", "CASSANDRA_RACK=r7")
        has(podman.cqlsh(where), "datacenter1", "rack1")
        has(podman.logs("it"), "SimpleSnitch")
        snitch = ["--env", "CASSANDRA_ENDPOINT_SNITCH=GossipingPropertyFileSnitch"]
        podman.start("--env", "CASSANDRA_DC=dc7", *snitch)
        has(podman.cqlsh(where), "dc7", "rack1")

    def scripts_run_once_and_before_clients_are_let_in():
        scripts = work / "scripts"
        shutil.rmtree(scripts, ignore_errors=True)
        scripts.mkdir()
        (scripts / "10.cql").write_text(
            "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};\n"
            "CREATE TABLE k.t (k int PRIMARY KEY, v text);\n"
        )
        (scripts / "20.sh").write_text("cqlsh -e \"INSERT INTO k.t (k, v) VALUES (1, 'from a script')\"\n")
        podman.start("--volume", f"{scripts}:/docker-entrypoint-initdb.d:ro")
        has(podman.cqlsh("SELECT v FROM k.t"), "from a script")
        podman.run("restart", "it")
        while podman.logs("it").count(READY) < 2:
            time.sleep(0.05)
        assert podman.logs("it").count("prepared - by 2 scripts") == 1, podman.logs("it")
        has(podman.cqlsh("SELECT v FROM k.t"), "from a script")
        (scripts / "10.cql").write_text("CREATE NONSENSE;\n")
        podman.start("--volume", f"{scripts}:/docker-entrypoint-initdb.d:ro", ready="10.cql failed")

    def a_volume_keeps_rows_and_the_container_stops_quickly():
        podman.run("volume", "rm", "--force", "kept", check=False)
        podman.start("--volume", "kept:/var/lib/cassandra")
        podman.cqlsh("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        podman.cqlsh("CREATE TABLE k.t (k int PRIMARY KEY)")
        podman.cqlsh("INSERT INTO k.t (k) VALUES (42)")
        begin = time.monotonic()
        podman.run("stop", "it")
        print(f"    stop, podman included: {(time.monotonic() - begin) * 1000:.0f} ms")
        has(podman.logs("it"), "nothing to replay")
        podman.start("--volume", "kept:/var/lib/cassandra")
        has(podman.cqlsh("SELECT k FROM k.t"), "42")

    def nodetool_speaks_to_the_node():
        podman.start()
        has(podman.run("exec", "it", "nodetool", "-h", "localhost", "-p", "7199", "status"), "UN ", "datacenter1")
        has(podman.run("exec", "it", "nodetool", "info"), "Native Transport active", "true")
        has(podman.run("exec", "it", "nodetool", "version"), "ReleaseVersion: 5.0")
        has(podman.run("exec", "it", "cqlsh", "--version"), "6.2.0")
        # What health checks of compose files and scripts of operators ask, with the answers of Cassandra 5.0.9 alone.
        for verb, answer in [
            ("statusbinary", "running"),
            ("statusgossip", "running"),
            ("statushandoff", "Hinted handoff is running"),
            ("statusbackup", "not running"),
            ("failuredetector", "Endpoint,             Phi"),
        ]:
            found = podman.run("exec", "it", "sh", "-c", f"nodetool {verb}")
            assert found.strip() == answer, (verb, found)
        has(podman.run("exec", "it", "nodetool", "netstats"), "Mode: NORMAL", "Gossip messages")
        has(podman.run("exec", "it", "nodetool", "gossipinfo"), "STATUS:24:NORMAL,", "RPC_READY:27:true")
        has(podman.run("exec", "it", "nodetool", "gcstats"), "Total GC Elapsed (ms)")
        has(podman.run("exec", "it", "nodetool", "info"), "Gossip active          : true")

    def the_file_may_be_changed_by_sed_and_is_read():
        podman.start(command=["sh", "-c", "sed -i 's/^cluster_name:.*/cluster_name: Changed/' /etc/cassandra/cassandra.yaml && exec docker-entrypoint.sh"])
        has(podman.cqlsh("SELECT cluster_name FROM system.local"), "Changed")

    def it_runs_as_any_user_on_a_read_only_root_with_little_memory():
        podman.start("--user", "123456:0", "--read-only", "--memory", "64m", "--tmpfs", "/var/lib/cassandra:mode=1777")
        podman.cqlsh("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")

    def everything_may_be_in_memory():
        podman.start("--env", "HELENUS_MEMORY=true")
        has(podman.logs("it"), "nothing survives the server")
        assert podman.run("exec", "it", "sh", "-c", "nodetool statusbinary") == "running"

    def a_name_and_a_password_turn_logins_on():
        given = ["--env", "CASSANDRA_USERNAME=me", "--env", "CASSANDRA_PASSWORD=secret"]
        scripts = work / "scripts"
        shutil.rmtree(scripts, ignore_errors=True)
        scripts.mkdir()
        (scripts / "10.cql").write_text(f"CREATE KEYSPACE k WITH replication = {STRATEGY};\nCREATE TABLE k.t (k int PRIMARY KEY);\n")
        (scripts / "20.sh").write_text('cqlsh -u "$CASSANDRA_USERNAME" -p "$CASSANDRA_PASSWORD" -e "INSERT INTO k.t (k) VALUES (7)"\n')
        podman.start(*given, "--volume", f"{scripts}:/docker-entrypoint-initdb.d:ro", "--read-only", "--tmpfs", "/var/lib/cassandra:mode=1777")
        has(podman.cqlsh("SELECT k FROM k.t", user="me", password="secret"), "7")
        has(podman.cqlsh("LIST ROLES", user="me", password="secret"), "me")
        for user, password in [("me", "wrong"), ("cassandra", "cassandra")]:
            done = podman.run("exec", "it", "cqlsh", "-u", user, "-p", password, "-e", "SELECT k FROM k.t", check=False)
            assert "7" not in done, done
        assert podman.run("exec", "it", "sh", "-c", "nodetool statusbinary") == "running"
        podman.start("--env", "CASSANDRA_PASSWORD=other")
        has(podman.cqlsh("LIST ROLES", password="other"), "cassandra")

    def tls_by_a_changed_file_and_certificates_that_are_mounted():
        certificates = work / "certificates"
        shutil.rmtree(certificates, ignore_errors=True)
        certificates.mkdir(mode=0o777)
        certificates.chmod(0o777)
        podman.run("run", "--rm", "--volume", f"{certificates}:/out", IMAGE, "helenus", "cert", "/out/c")
        for path in [certificates / "c", *(certificates / "c").iterdir()]:
            path.chmod(0o755)
        options = "client_encryption_options: {enabled: true, certificate: /c/server.crt, keyfile: /c/server.key}"
        change = f"sed -i -e '/^client_encryption_options/,/require_client_auth/d' /etc/cassandra/cassandra.yaml && echo '{options}' >> /etc/cassandra/cassandra.yaml && exec docker-entrypoint.sh"
        podman.start("--volume", f"{certificates}/c:/c:ro", command=["sh", "-c", change])
        clear = podman.run("exec", "it", "cqlsh", "-e", "SELECT bootstrapped FROM system.local", check=False)
        assert "COMPLETED" not in clear, clear
        ssl = ["--env", "SSL_CERTFILE=/c/ca.pem", "it", "cqlsh", "--ssl", "localhost"]
        asked = podman.run("exec", *ssl, "-e", "SELECT bootstrapped FROM system.local")
        has(asked, "COMPLETED")

    def what_it_cannot_do_it_says_at_its_start():
        podman.start("--env", "HELENUS_NO_SUCH=1")
        podman.refused("--env", "CASSANDRA_SEEDS=192.0.2.1", reason="HELENUS_IGNORE_SEEDS")
        meant = ["--env", "CASSANDRA_SEEDS=192.0.2.1", "--env", "HELENUS_IGNORE_SEEDS=true"]
        podman.start(*meant, ready="joins no cluster")
        # Alone, it is its own seed by any of its names.
        podman.start("--hostname", "db-0", "--env", "CASSANDRA_SEEDS=localhost,db-0.db.default.svc.cluster.local")

    def other_commands_run_instead_of_the_server():
        has(podman.run("run", "--rm", IMAGE, "helenus", "--version"), "helenus ")
        has(podman.run("run", "--rm", IMAGE, "cassandra", "-v"), "5.0.")

    tests = [test for test in locals().values() if callable(test)]
    return [(test.__name__, test) for test in tests]


def foreign_tests(podman, folder):
    """The image for the other processor, whose programs qemu runs."""
    layout = folder.resolve() / "layout"

    def the_image_for_arm64_writes_and_reads_a_row():
        blob = lambda named: json.loads((layout / "blobs" / named["digest"].replace(":", "/")).read_text())
        [whole, *_] = json.loads((layout / "index.json").read_text())["manifests"]
        qemu = shutil.which("qemu-aarch64-static")
        if not qemu or "manifests" not in blob(whole):
            print("    not run: it needs an image of `cargo xtask image --arm64`, and qemu-user-static")
            return
        name = whole["annotations"]["org.opencontainers.image.ref.name"]
        image = podman.run("pull", "--quiet", "--arch", "arm64", f"oci:{layout}:{name}")
        # qemu instead of the entry point, which is a script for a shell of the other processor.
        program = "/usr/local/bin/helenus"
        given = ["--user", "999:999", "--volume", f"{qemu}:/qemu:ro", "--entrypoint", "/qemu"]
        podman.start(*given, image=image, command=["-0", "cassandra", program, "-f"])
        rows = f"CREATE KEYSPACE k WITH replication = {STRATEGY}; CREATE TABLE k.t (k int PRIMARY KEY); INSERT INTO k.t (k) VALUES (42); SELECT k FROM k.t;"
        has(podman.run("exec", "it", "/qemu", "-0", "cqlsh", program, "-e", rows), "42")

    return [(test.__name__, test) for test in [the_image_for_arm64_writes_and_reads_a_row]]


def bad_input_tests(podman, work):
    """What a container meets where it may not write, has no port, or finds another's data. It says so and harms nothing."""

    def a_name_without_a_password_is_refused():
        podman.refused("--env", "CASSANDRA_USERNAME=me", reason="without CASSANDRA_PASSWORD")

    def a_volume_that_it_may_not_write_is_refused():
        folder = work / "foreign"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o755)
        podman.refused("--user", "4242", "--volume", f"{folder}:/var/lib/cassandra", reason="/var/lib/cassandra")
        podman.refused("--read-only", "--user", "999", "--volume", f"{folder}:/var/lib/cassandra:ro", reason="/var/lib/cassandra")
        assert list(folder.iterdir()) == []

    def a_port_that_is_taken_is_named():
        podman.start()
        podman.refused("--network", "container:it", reason="9042")
        has(podman.cqlsh("SELECT bootstrapped FROM system.local"), "COMPLETED")

    def a_wrong_configuration_names_file_and_line():
        podman.refused(reason="cassandra.yaml", command=["sh", "-c", "echo 'num_tokns: 5' >> /etc/cassandra/cassandra.yaml && exec docker-entrypoint.sh"])
        podman.refused(reason="cannot read", command=["sh", "-c", "rm /etc/cassandra/cassandra.yaml && exec docker-entrypoint.sh"])

    def an_arbitrary_user_with_the_group_root_keeps_its_data():
        # As OpenShift starts it: a random number, group 0, no more rights, and a volume that the group may write.
        folder = work / "openshift"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        folder.chmod(0o770)
        given = ["--user", "1000680000:0", "--cap-drop", "all", "--read-only", "--security-opt", "no-new-privileges"]
        for number in [1, 2]:
            podman.start(*given, "--volume", f"{folder}:/var/lib/cassandra")
            if number == 1:
                podman.cqlsh(f"CREATE KEYSPACE k WITH replication = {STRATEGY}")
                podman.cqlsh("CREATE TABLE k.t (k int PRIMARY KEY)")
                podman.cqlsh("INSERT INTO k.t (k) VALUES (42)")
            has(podman.cqlsh("SELECT k FROM k.t"), "42")
            podman.run("stop", "it")

    def sixty_four_mebibytes_are_enough_for_rows_and_a_restart():
        podman.run("volume", "rm", "--force", "small", check=False)
        podman.start("--memory", "64m", "--memory-swap", "64m", "--volume", "small:/var/lib/cassandra")
        podman.cqlsh(f"CREATE KEYSPACE k WITH replication = {STRATEGY}")
        podman.cqlsh("CREATE TABLE k.t (k int PRIMARY KEY, v blob)")
        rows = "\n".join(f"INSERT INTO k.t (k, v) VALUES ({k}, 0x{'ab' * 2000});" for k in range(3000))
        podman.run("exec", "--interactive", "it", "cqlsh", input=rows)
        podman.run("restart", "it")
        while podman.logs("it").count(READY) < 2:
            time.sleep(0.05)
        has(podman.cqlsh("SELECT count(*) FROM k.t"), "3000")
        assert podman.run("inspect", "--format", "{{.State.OOMKilled}}", "it") == "false"

    tests = [test for test in locals().values() if callable(test)]
    return [(test.__name__, test) for test in tests]


def volume_tests(podman, work):
    """Volumes with the data of a real Cassandra: refused with words, and every byte is as before."""
    tools = HERE.parent / "tools"

    def stock(version, script, *start, cql, release=""):
        environment = os.environ | ({"RELEASE": release} if release else {})
        folder = work / f"cassandra-{version}"
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            called(tools / script, "start", folder / "node", *start, env=environment)
            try:
                for statement in [f"CREATE KEYSPACE k WITH replication = {STRATEGY}", "CREATE TABLE k.t (k int PRIMARY KEY)", "INSERT INTO k.t (k) VALUES (42)"]:
                    podman.run("run", "--rm", "--network", "host", IMAGE, "cqlsh", "127.0.0.1", cql, "-e", statement)
            finally:
                called(tools / script, "stop", folder / "node")
            # As in the official image: data, commitlog and the rest below /var/lib/cassandra.
            (folder / "volume").mkdir()
            for name in ["data", "commitlog", "saved_caches", "hints"]:
                if (folder / "node" / name).exists():
                    shutil.copytree(folder / "node" / name, folder / "volume" / name)
            (folder / "complete").touch()
        before = digest(folder / "volume")
        assert any(name.endswith("-Data.db") for name in before), before
        podman.refused("--user", "0", "--volume", f"{folder / 'volume'}:/var/lib/cassandra", reason="has the files of a Cassandra node")
        assert digest(folder / "volume") == before, "a file has changed"

    def of_cassandra_5_0():
        stock("5.0", "cassandra.sh", "--port", "29142", cql="29142")

    def of_cassandra_4_1():
        stock("4.1", "old_cassandra.sh", "29150", cql="29151", release="4.1.10")

    def of_cassandra_3_11():
        stock("3.11", "old_cassandra.sh", "29160", cql="29161")

    return [(test.__name__, test) for test in [of_cassandra_5_0, of_cassandra_4_1, of_cassandra_3_11]]


def digest(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def scylla_tests(podman, work):
    """The tag that stands in for ScyllaDB's image, as its module starts it."""
    arguments = ["--developer-mode=1", "--overprovisioned=1", "--smp=1", "--memory=512M"]

    def it_starts_with_the_arguments_of_the_module():
        podman.start(image=SCYLLA, ready="initialization completed.", command=arguments)
        has(podman.logs("it"), "without effect on this one node: --developer-mode, --overprovisioned, --smp")
        has(podman.run("exec", "it", "cqlsh", "-e", "SELECT bootstrapped FROM system.local"), "COMPLETED")
        has(podman.run("exec", "it", "cqlsh", "127.0.0.1", "19042", "-e", "SELECT address, driver_name FROM system.clients"), "127.0.0.1")
        assert podman.run("exec", "it", "sh", "-c", "nodetool statusbinary") == "running"

    def timeouts_and_the_hint_about_the_cache_are_accepted():
        podman.cqlsh(f"CREATE KEYSPACE k WITH replication = {STRATEGY}")
        podman.cqlsh("CREATE TABLE k.t (k int PRIMARY KEY)")
        podman.cqlsh("INSERT INTO k.t (k) VALUES (42) USING TIMEOUT 5s")
        has(podman.cqlsh("SELECT k FROM k.t BYPASS CACHE USING TIMEOUT 10s"), "42")

    def a_mounted_file_is_read_and_the_volume_kept():
        file = work / "scylla.yaml"
        file.write_text("cluster_name: Mine\napi_port: 10000\nenable_tablets: true\nnative_shard_aware_transport_port: 19042\ncommitlog_total_space_in_mb: -1\n")
        podman.run("volume", "rm", "--force", "scylla", check=False)
        for _ in range(2):
            podman.start("--volume", f"{file}:/etc/scylla/scylla.yaml", "--volume", "scylla:/var/lib/scylla", image=SCYLLA, command=arguments)
            has(podman.cqlsh("SELECT cluster_name FROM system.local"), "Mine")
            podman.cqlsh(f"CREATE KEYSPACE IF NOT EXISTS k WITH replication = {STRATEGY}")
            podman.run("stop", "it")
        has(podman.logs("it"), "/var/lib/scylla")

    def alternator_is_refused():
        podman.refused(image=SCYLLA, command=["--alternator-port=8000"], reason="DynamoDB's interface")

    tests = [test for test in locals().values() if callable(test)]
    return [(test.__name__, test) for test in tests]


def once(folder, pinned, install):
    """Installs unless the folder was installed from the same text."""
    stamp = folder / "installed"
    if not (stamp.exists() and stamp.read_text() == pinned):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        install()
        stamp.write_text(pinned)
    return folder


def called(*words, **options):
    done = subprocess.run(words, text=True, capture_output=True, check=False, **options)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def module_tests(podman, work, release, wanted):
    pinned = json.loads((HERE / "modules.json").read_text())
    environment = os.environ | {
        "DOCKER_HOST": f"unix://{podman.socket}",
        "TESTCONTAINERS_RYUK_DISABLED": "true",
        "TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1",
        "TC_HOST": "127.0.0.1",
        "TESTCONTAINERS_CONNECTION_MODE": "docker_host",
    }

    def python():
        folder = work / "python"
        pip = lambda: (called("python3", "-m", "venv", folder), called(folder / "bin/pip", "install", "--quiet", *pinned["python"]))
        once(folder, " ".join(pinned["python"]), pip)
        called(folder / "bin/python", HERE / "module.py", release, env=environment)

    def node():
        run_node("cassandra", "module.mjs", release)

    def node_scylladb():
        run_node("scylladb", "scylla.mjs", SCYLLA_TAGS[0], node_22())

    def node_22():
        # Version 11 of the module for ScyllaDB is not in the registry, and version 12 needs Node 22.
        installed = called("node", "--version").strip()
        if int(installed.lstrip("v").split(".")[0]) >= 22:
            return "node"
        folder = npm(work / "node-22", [pinned["node-22"]])
        return folder / "node_modules/.bin/node"

    def run_node(module, script, argument, program="node"):
        folder = npm(work / f"node-{module}", pinned["node"][module])
        called(program, HERE / script, argument, folder, env=environment)

    def npm(folder, packages):
        install = lambda: called("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder, *packages)
        return once(folder, " ".join(packages), install)

    def go():
        for module in pinned["go"]:
            run_go(module, work / f"go-{module.split('/')[-1].split('@')[0]}")

    def run_go(module, folder):
        def copy():
            found = json.loads(called("go", "mod", "download", "-json", module, cwd=work))
            shutil.copytree(found["Dir"], folder, dirs_exist_ok=True, copy_function=shutil.copyfile)
            for path in [folder, *folder.rglob("*")]:
                path.chmod(0o755)
            # The module's file names its neighbours in the repository.
            file = folder / "go.mod"
            file.write_text("".join(line for line in file.read_text().splitlines(True) if not line.startswith("replace")))

        once(folder, module, copy)
        # Examples print the number of the image's tag, which is not this image's release. Alternator is DynamoDB's interface.
        tests = ["go", "test", "-mod=mod", "-p", "1", "-count", "1", "-run", "^Test", "-skip", "Alternator", "./..."]
        called(*tests, cwd=folder, env=environment)

    def spring():
        folder = work / "spring"
        once(folder, (HERE / "spring/pom.xml").read_text(), lambda: None)
        shutil.copytree(HERE / "spring", folder, dirs_exist_ok=True)
        called("mvn", "--quiet", "--batch-mode", "test", cwd=folder, env=environment)

    def java():
        clone = os.environ.get("TESTCONTAINERS_JAVA")
        assert clone, "TESTCONTAINERS_JAVA names no clone of testcontainers-java"
        for module, parts in pinned["java"].items():
            folder = work / f"java-{module}"
            shutil.rmtree(folder / "src", ignore_errors=True)
            folder.mkdir(exist_ok=True)
            packed = subprocess.run(["git", "-C", clone, "archive", "HEAD", f"modules/{module}/src/test"], check=True, capture_output=True)
            subprocess.run(["tar", "x", "--strip-components=2"], cwd=folder, input=packed.stdout, check=True)
            pom = (HERE / "java.pom.xml").read_text()
            for name, value in parts.items():
                pom = pom.replace(f"@{name}@", value)
            (folder / "pom.xml").write_text(pom)
            done = subprocess.run(["mvn", "--batch-mode", "test"], cwd=folder, env=environment, text=True, capture_output=True)
            lines = [line for line in done.stdout.splitlines() if "Tests run:" in line or "[ERROR]   " in line]
            print("\n".join(f"    {module}: {line}" for line in lines))

    return [(test.__name__, test) for test in [python, node, node_scylladb, go, spring, java] if test.__name__ in wanted]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    folder, work, names = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] or DEFAULT
    if not shutil.which("podman") or not shutil.which("runc"):
        sys.exit(f"podman or runc is missing: apt-get install --no-install-recommends {PACKAGES}")
    work.mkdir(parents=True, exist_ok=True)
    podman = Podman(work)
    loaded = podman.run("load", "--quiet", "--input", str(folder / "image.tar")).split()[-1]
    podman.run("tag", loaded, IMAGE)
    of_scylla = podman.run("load", "--quiet", "--input", str(folder / "image-scylla.tar")).split()[-1]
    for tag in [SCYLLA, *(f"docker.io/scylladb/scylla:{tag}" for tag in SCYLLA_TAGS)]:
        podman.run("tag", of_scylla, tag)
    release = podman.run("run", "--rm", IMAGE, "cassandra", "-v")
    for tag in [release, *TAGS]:
        podman.run("tag", loaded, f"docker.io/library/cassandra:{tag}")
    podman.serve()
    groups = {"image": image_tests, "bad": bad_input_tests, "scylla": scylla_tests, "volumes": volume_tests}
    tests = [test for name, group in groups.items() if name in names for test in group(podman, work)]
    if "foreign" in names:
        tests += foreign_tests(podman, folder)
    tests += module_tests(podman, work, release, names)
    failed = 0
    try:
        for name, test in tests:
            begin = time.monotonic()
            try:
                test()
                print(f"ok     {name}, {time.monotonic() - begin:.1f} s", flush=True)
            except (AssertionError, OSError) as error:
                failed += 1
                print(f"FAILED {name}: {error}", flush=True)
    finally:
        podman.stop()
    print(f"{len(tests) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
