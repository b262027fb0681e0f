#!/usr/bin/env python3
"""Runs the container image under podman, without a daemon: what it promises, then modules of Testcontainers.

    tests/containers/run.py IMAGE.tar WORK [NAME...]       NAME: image, python, node, go; all by default

WORK keeps podman's store and the modules, which come from their registries at the versions of modules.json. Needs root,
Python 3 with venv, Node.js, Go, and the Debian packages of PACKAGES. `cargo xtask image --test` calls it.
"""

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
# Tags that the modules' own tests name, besides the release.
TAGS = ["latest", "5", "4.1.3"]
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

    def start(self, *words, name="it", ready=READY, command=()):
        """Starts a container, waits for a text in its log, and returns the milliseconds."""
        self.run("rm", "--force", name, check=False)
        begin = time.monotonic()
        self.run("run", "--detach", "--name", name, *words, IMAGE, *command)
        while ready not in (log := self.logs(name)):
            if "running" not in self.run("inspect", "--format", "{{.State.Status}}", name) and ready not in self.logs(name):
                raise AssertionError(f"the container ended before '{ready}':\n{log}")
            if time.monotonic() - begin > 60:
                raise AssertionError(f"no '{ready}' in a minute:\n{log}")
            time.sleep(0.02)
        return (time.monotonic() - begin) * 1000

    def cqlsh(self, statement, name="it"):
        return self.run("exec", name, "cqlsh", "-u", "cassandra", "-p", "cassandra", "-e", statement)


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
        assert podman.run("exec", "it", "sh", "-c", "nodetool statusbinary") == "running"

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

    def what_it_cannot_do_it_says_at_its_start():
        podman.start("--env", "CASSANDRA_USERNAME=me", "--env", "CASSANDRA_PASSWORD=secret", ready="HELENUS_PASSWORD_FILE")
        podman.start("--env", "HELENUS_NO_SUCH=1")
        podman.start("--env", "CASSANDRA_SEEDS=other", ready="joins no cluster")

    def other_commands_run_instead_of_the_server():
        has(podman.run("run", "--rm", IMAGE, "helenus", "--version"), "helenus ")
        has(podman.run("run", "--rm", IMAGE, "cassandra", "-v"), "5.0.")

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
        folder = work / "node"
        npm = lambda: called("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder, *pinned["node"])
        once(folder, " ".join(pinned["node"]), npm)
        called("node", HERE / "module.mjs", release, folder, env=environment)

    def go():
        folder = work / "go"

        def copy():
            found = json.loads(called("go", "mod", "download", "-json", pinned["go"], cwd=work))
            shutil.copytree(found["Dir"], folder, dirs_exist_ok=True, copy_function=shutil.copyfile)
            for path in [folder, *folder.rglob("*")]:
                path.chmod(0o755)
            # The module's file names its neighbours in the repository.
            file = folder / "go.mod"
            file.write_text("".join(line for line in file.read_text().splitlines(True) if not line.startswith("replace")))

        once(folder, pinned["go"], copy)
        # Its examples print the number of the image's tag, which is not this image's release.
        tests = ["go", "test", "-mod=mod", "-p", "1", "-count", "1", "-run", "^Test", "./..."]
        called(*tests, cwd=folder, env=environment)

    return [(test.__name__, test) for test in [python, node, go] if test.__name__ in wanted]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    image, work, names = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] or ["image", "python", "node", "go"]
    if not shutil.which("podman") or not shutil.which("runc"):
        sys.exit(f"podman or runc is missing: apt-get install --no-install-recommends {PACKAGES}")
    work.mkdir(parents=True, exist_ok=True)
    podman = Podman(work)
    loaded = podman.run("load", "--quiet", "--input", str(image)).split()[-1]
    podman.run("tag", loaded, IMAGE)
    release = podman.run("run", "--rm", IMAGE, "cassandra", "-v")
    for tag in [release, *TAGS]:
        podman.run("tag", loaded, f"docker.io/library/cassandra:{tag}")
    podman.serve()
    tests = (image_tests(podman, work) if "image" in names else []) + module_tests(podman, work, release, names)
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
