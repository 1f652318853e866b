"""A real OpenSearch on this machine without Docker: put together from Maven artifacts, started, stopped.

    python -m infra.local.opensearch assemble|start|stop

What is fixed here was found by running it: the server's main jar leaves out three libraries that its start needs, each module wants a
descriptor and the rights it asks Java's security manager for (so Java 17 to 23), and root is refused.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from infra.local import processes
from infra.local.progress import Failure, Progress
from infra.local.settings import ROOT

VERSION = "2.19.1"
PORT = 9200
HEAP = "768m"
JAVA = range(17, 24)  # older does not run this server; 24 has no security manager any more
_UNPRIVILEGED = "nobody"
_SERVER = (
    f"org.opensearch:opensearch:{VERSION}",
    f"org.opensearch:opensearch-plugin-classloader:{VERSION}",
    "org.apache.logging.log4j:log4j-core:2.21.0",
    "org.locationtech.spatial4j:spatial4j:0.7",
    "org.locationtech.jts:jts-core:1.15.0",
)
_LOGGING = """
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%c{1.}] %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""


@dataclass(frozen=True, slots=True)
class Module:
    name: str
    artifact: str
    main: str
    extends: str = ""
    permissions: tuple[str, ...] = ()


MODULES = (
    Module(
        "lang-painless",
        "lang-painless",
        "org.opensearch.painless.PainlessPlugin",
        permissions=('java.lang.RuntimePermission "createClassLoader"', 'java.lang.RuntimePermission "getClassLoader"'),
    ),
    Module("analysis-common", "analysis-common", "org.opensearch.analysis.common.CommonAnalysisPlugin", "lang-painless"),
    Module(
        "reindex",
        "reindex-client",
        "org.opensearch.index.reindex.ReindexPlugin",
        permissions=('java.net.SocketPermission "*", "connect"', 'java.lang.RuntimePermission "setFactory"'),
    ),
    Module(
        "transport-netty4",
        "transport-netty4-client",
        "org.opensearch.transport.Netty4Plugin",
        permissions=(
            'java.io.FilePermission "/proc/sys/net/core/somaxconn", "read"',
            'java.net.SocketPermission "*", "accept,connect,listen,resolve"',
            'java.util.PropertyPermission "sun.nio.ch.bugLevel", "write"',
        ),
    ),
)


# What the machine has


def java(environ: Mapping[str, str]) -> Path:
    """A Java that runs this server: JAVA_HOME's where it is set, else the first that fits."""
    chosen = environ.get("JAVA_HOME")
    found = [Path(chosen, "bin", "java")] if chosen else _javas()
    versions = {path: _java_version(path) for path in found}
    for path, version in versions.items():
        if version in JAVA:
            return path
    seen = ", ".join(f"{path} ({version or 'does not run'})" for path, version in versions.items()) or "none was found"
    raise Failure(
        f"OpenSearch needs Java {JAVA[0]} to {JAVA[-1]}: {seen}.\n"
        f"Install one (Debian: openjdk-17-jre-headless) or point JAVA_HOME at it; or use Docker: docker compose -f infra/compose.yaml up -d"
    )


def _javas() -> list[Path]:
    first = shutil.which("java")
    others = sorted(path for place in ("/usr/lib/jvm", "/Library/Java/JavaVirtualMachines") for path in Path(place).glob("*/**/bin/java"))
    return list(dict.fromkeys([*([Path(first)] if first else []), *others]))


def _java_version(path: Path) -> int:
    """The feature release, 0 where it does not run."""
    try:
        ran = subprocess.run([str(path), "-version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    stated = re.search(r'version "(?:1\.)?(\d+)', ran.stderr + ran.stdout)
    return int(stated.group(1)) if stated and ran.returncode == 0 else 0


def maven() -> str:
    found = shutil.which("mvn")
    if found is None:
        raise Failure("OpenSearch is put together from Maven artifacts, and `mvn` is missing. Install it (Debian: maven), or use Docker.")
    return found


def missing(environ: Mapping[str, str]) -> str | None:
    """Why no server can run here, or None."""
    try:
        java(environ)
        if not (home(environ) / "lib").exists():
            maven()
    except Failure as failure:
        return str(failure)
    return None


def home(environ: Mapping[str, str]) -> Path:
    """Where the server's files are, shared by all instances: TIDEMARK_OPENSEARCH_HOME, else below .local."""
    chosen = environ.get("TIDEMARK_OPENSEARCH_HOME")
    return _for_the_server(Path(chosen).resolve() if chosen else ROOT / ".local" / "tools" / "opensearch") / VERSION


def state(environ: Mapping[str, str]) -> Path:
    """Its data, logs and pid: below the state directory of `make run`."""
    return _for_the_server((ROOT / (environ.get("TIDEMARK_STATE_DIR") or ".local")).resolve() / "opensearch")


def _for_the_server(wanted: Path) -> Path:
    """Another place where the unprivileged user that root starts it as could not go, below /root for example."""
    if os.geteuid() != 0 or all(place.stat().st_mode & 0o001 for place in wanted.parents if place.exists()):
        return wanted
    return Path(tempfile.gettempdir()) / "tidemark-opensearch" / str(wanted).strip("/").replace("/", "_")


# Putting it together


def assemble(target: Path, progress: Progress) -> None:
    """Does nothing where it is done already; what was interrupted is begun anew."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with processes.lock(target.parent / f"{target.name}.lock", wait=True):
        if target.exists():
            return
        with progress.step(f"Assembling OpenSearch {VERSION} from Maven artifacts"):
            building = target.with_name(f"{target.name}.building")
            shutil.rmtree(building, ignore_errors=True)
            _lay_out(building)
            for place in (building, *building.rglob("*")):  # whatever the umask: another user runs it
                place.chmod(place.stat().st_mode | (0o555 if place.is_dir() else 0o444))
            building.rename(target)


def _lay_out(building: Path) -> None:
    for name in ("bin", "extensions"):  # empty, but the server insists on them, and cannot make them here
        (building / name).mkdir(parents=True)
    library = building / "lib"
    _fetch(library, *(f"{coordinates}:jar" for coordinates in _SERVER))
    present = {jar.name for jar in library.iterdir()}
    for module in MODULES:
        folder = building / "modules" / module.name
        _fetch(folder, f"org.opensearch.plugin:{module.artifact}:{VERSION}:jar")
        for jar in folder.iterdir():
            if jar.name in present:  # the server refuses a class that it would see twice
                jar.unlink()
        _describe(folder, module)
    with tempfile.TemporaryDirectory() as work:
        _fetch(Path(work), f"org.opensearch.plugin:opensearch-knn:{VERSION}.0:zip")
        with zipfile.ZipFile(next(Path(work).glob("*.zip"))) as archive:
            archive.extractall(building / "plugins" / "opensearch-knn")


def _describe(folder: Path, module: Module) -> None:
    fields = {
        "name": module.name,
        "description": module.name,
        "version": VERSION,
        "opensearch.version": VERSION,
        "java.version": "11",
        "classname": module.main,
        "extended.plugins": module.extends,
        "has.native.controller": "false",
    }
    (folder / "plugin-descriptor.properties").write_text("".join(f"{name}={value}\n" for name, value in fields.items()))
    if module.permissions:
        granted = "".join(f"  permission {permission};\n" for permission in module.permissions)
        (folder / "plugin-security.policy").write_text(f"grant {{\n{granted}}};\n")


def _fetch(target: Path, *coordinates: str) -> None:
    """Copies artifacts, and of jars what they need, into a folder."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        project = Path(work, "pom.xml")
        project.write_text(_project(coordinates))
        command = [maven(), "-q", "-B", "-f", str(project), "dependency:copy-dependencies", f"-DoutputDirectory={target}"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise Failure(f"Maven could not fetch {', '.join(coordinates)}:\n{(ran.stdout + ran.stderr).strip()[-2000:]}")


def _project(coordinates: tuple[str, ...]) -> str:
    wanted = []
    for group, name, version, kind in (one.split(":") for one in coordinates):
        alone = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>" if kind == "zip" else ""
        parts = {"groupId": group, "artifactId": name, "version": version, "type": kind}
        wanted.append("<dependency>" + "".join(f"<{tag}>{escape(text)}</{tag}>" for tag, text in parts.items()) + f"{alone}</dependency>")
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>tidemark.local</groupId><artifactId>opensearch</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{''.join(wanted)}</dependencies></project>"
    )


# Running it


class Server:
    """One instance: its files are shared, its state is its own."""

    def __init__(self, files: Path, state: Path, runtime: Path) -> None:
        self._files, self._state, self._java = files, state, runtime
        self._record = state / "server.json"
        self._log = state / "logs" / "console.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def _mark(self) -> str:
        return f"-Dopensearch.path.conf={self._state / 'config'} "

    def running(self) -> str | None:
        """Its address while it lives."""
        recorded = processes.recorded(self._record)
        pid, port = recorded.get("pid"), recorded.get("port")
        return f"http://127.0.0.1:{port}" if isinstance(pid, int) and self._mark in processes.command_of(pid) else None

    def start(self, port: int, heap: str = HEAP, patience: float = 120) -> str:
        """Starts it in the background, waits until it answers, and gives its address; one that runs is taken as it is."""
        if (address := self.running()) is not None:
            self._await(address, patience)
            return address
        self._free(port)
        for name in ("config", "data", "logs", "tmp"):
            (self._state / name).mkdir(parents=True, exist_ok=True)
        (self._state / "config" / "log4j2.properties").write_text(_LOGGING)
        (self._state / "config" / "opensearch.yml").write_text(json.dumps(self._configuration(port)))  # JSON is YAML
        user = self._unprivileged()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command(heap), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._state, start_new_session=True, **user
            )
        processes.record(self._record, self._process.pid, port=port)
        address = f"http://127.0.0.1:{port}"
        self._await(address, patience)
        return address

    def stop(self) -> bool:
        """Whether one ran. A killed server loses nothing that it confirmed, but takes longer to start."""
        stopped = processes.end_leftover(self._record, self._mark, patience=30)
        self._record.unlink(missing_ok=True)
        if self._process is not None:
            self._process.wait()
        return stopped

    @staticmethod
    def _free(port: int) -> None:
        try:
            processes.bind(port).close()
        except Failure as failure:
            raise Failure(
                f"Port {port} is taken, and not by this instance's OpenSearch. Set TIDEMARK_OPENSEARCH_PORT to a free one."
            ) from failure

    def _configuration(self, port: int) -> dict[str, object]:
        return {
            "cluster.name": "tidemark-local",
            "node.name": "local",
            "discovery.type": "single-node",
            "network.host": "127.0.0.1",
            "http.port": port,
            "transport.port": f"{port + 100}-{port + 199}",
            "path.data": str(self._state / "data"),
            "path.logs": str(self._state / "logs"),
            "action.auto_create_index": False,  # a misspelt name must fail, not make an index without mappings
            "cluster.routing.allocation.disk.threshold_enabled": False,
        }

    def _command(self, heap: str) -> list[str]:
        return [
            str(self._java),
            f"-Xms{heap}",
            f"-Xmx{heap}",
            "-XX:+UseSerialGC",
            "-Djava.security.manager=allow",
            "--add-modules=jdk.incubator.vector",
            "-Dfile.encoding=UTF-8",
            f"-Djava.io.tmpdir={self._state / 'tmp'}",
            "-Djna.nosys=true",
            "-Dio.netty.noUnsafe=true",
            "-Dlog4j2.disable.jmx=true",
            "-Dlog4j.shutdownHookEnabled=false",
            "-Dopensearch.distribution.type=tar",
            f"-Dopensearch.path.home={self._files}",
            self._mark.strip(),
            "-cp",
            f"{self._files / 'lib'}/*",
            "org.opensearch.bootstrap.OpenSearch",
        ]

    def _unprivileged(self) -> dict[str, Any]:
        if os.geteuid() != 0:
            return {}
        group = "nogroup" if _group_exists("nogroup") else _UNPRIVILEGED
        ran = subprocess.run(["chown", "-R", f"{_UNPRIVILEGED}:{group}", str(self._state)], capture_output=True, text=True, check=False)
        if ran.returncode:
            raise Failure(f"OpenSearch does not run as root, and {self._state} could not be given to {_UNPRIVILEGED}: {ran.stderr.strip()}")
        return {"user": _UNPRIVILEGED, "group": group, "extra_groups": []}

    def _await(self, address: str, patience: float) -> None:
        health = f"{address}/_cluster/health?wait_for_status=yellow&timeout=5s"
        if processes.answers(health, patience, lambda: self._process is not None and self._process.poll() is not None, patience=6):
            return
        self.stop()
        raise Failure(f"OpenSearch did not start; its log: {self._log}\n{_tail(self._log)}")


def _group_exists(name: str) -> bool:
    groups = Path("/etc/group")
    return groups.exists() and any(line.startswith(f"{name}:") for line in groups.read_text().splitlines())


def _tail(log: Path) -> str:
    """What it said last, without Java's traces."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join([line for line in lines if not line.startswith("\tat ")][-8:])


def server(environ: Mapping[str, str], progress: Progress) -> Server:
    """The instance of the state directory, its files in place."""
    runtime, files = java(environ), home(environ)
    assemble(files, progress)
    return Server(files, state(environ), runtime)


def port_of(environ: Mapping[str, str]) -> int:
    stated = environ.get("TIDEMARK_OPENSEARCH_PORT") or str(PORT)
    if not stated.isdecimal() or not 0 < int(stated) < 65336:
        raise Failure(f"TIDEMARK_OPENSEARCH_PORT must be a port number, not {stated!r}.")
    return int(stated)


@contextmanager
def for_this_run(environ: Mapping[str, str], progress: Progress) -> Iterator[str]:
    """The server of `make opensearch` where it runs already, else one of our own that ends with us."""
    found = server(environ, progress)
    if (address := found.running()) is not None:
        yield address
        return
    try:
        with progress.step("Starting OpenSearch"):
            address = found.start(port_of(environ) if environ.get("TIDEMARK_OPENSEARCH_PORT") else processes.free_port(PORT))
        yield address
    finally:
        found.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("assemble", "start", "stop"))
    action, progress = parser.parse_args().action, Progress()
    try:
        if action == "stop":
            stopped = Server(home(os.environ), state(os.environ), Path()).stop()
            print("Stopped; its data stays." if stopped else "No OpenSearch of this state directory runs.")
            return 0
        found = server(os.environ, progress)
        if action == "start":
            with progress.step("Starting OpenSearch"):
                address = found.start(port_of(os.environ))
            print(f"OpenSearch answers on {address}; `make opensearch-stop` ends it.")
    except Failure as failure:
        print(f"OpenSearch was not started: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
