"""Unpacks Debian packages and their dependencies into the cache, without root.

apt runs with a state of its own (sources, lists, and an empty list of installed packages). So it
resolves all dependencies, for any architecture, and changes nothing on the machine. The mirror,
its proxy and its keys come from the machine's apt configuration, which apt itself reads. The
unpacked programs are started through the unpacked loader and libraries, so they run on any Linux.
"""

import platform
import re
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import cache, progress
from ..errors import ToolError
from .retry import retry

SUITE = "trixie"  # of all packages; the first release with MicroPython

_CODENAMES = ("bullseye", "bookworm", "trixie", "forky", "duke", "sid")
_ALIASES = ("oldstable", "stable", "testing", "unstable")  # also used by other archives
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_INDEX = re.compile(r"'(?P<mirror>\S+?)/dists/(?P<suite>[^/\s]+)/main/binary-")

_APT_CONF = """\
#clear APT::Architectures;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
APT::Architectures {{ "{arch}"; }};
Dir::State "{state}";
Dir::State::status "{state}/status";
Dir::Cache "{state}";
Dir::Cache::archives "{state}/archives";
Dir::Etc::sourcelist "{state}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "{arch}";
APT::Sandbox::User "";
APT::Install-Recommends "false";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::Retries "3";
"""


@dataclass(frozen=True)
class Architecture:
    """A Debian architecture, with its library folder (triplet) and its loader."""

    name: str
    triplet: str
    loader: str


_I386 = Architecture("i386", "i386-linux-gnu", "ld-linux.so.2")
_AMD64 = Architecture("amd64", "x86_64-linux-gnu", "ld-linux-x86-64.so.2")
_ARMHF = Architecture("armhf", "arm-linux-gnueabihf", "ld-linux-armhf.so.3")
_ARM64 = Architecture("arm64", "aarch64-linux-gnu", "ld-linux-aarch64.so.1")
_RUNNABLE = {
    ("x86_64", 32): _I386,
    ("x86_64", 64): _AMD64,
    ("aarch64", 32): _ARMHF,
    ("aarch64", 64): _ARM64,
}


@dataclass(frozen=True)
class Unpacked:
    """A folder with packages unpacked into it."""

    root: Path
    arch: Architecture

    def command(self, program: str) -> list[str]:
        """The command line that runs `program`, a path such as "usr/bin/x", without arguments."""
        libraries = self.root / "usr/lib" / self.arch.triplet
        loader = libraries / self.arch.loader
        return [str(loader), "--library-path", str(libraries), str(self.root / program)]


def architecture(bits: int = 64) -> Architecture:
    """The Debian architecture with this word size that this machine can run.

    ToolError: none is known."""
    machine = platform.machine()
    arch = _RUNNABLE.get((machine, bits))
    if arch is None:
        raise ToolError(f"no {bits}-bit Debian architecture is known for a {machine} machine")
    return arch


def unpack(packages: Sequence[str], arch: Architecture | None = None) -> Unpacked:
    """The packages and their dependencies, from the cache or from the mirror.

    ToolError: they cannot be fetched."""
    arch = arch or architecture()
    name = f"debian/{SUITE}-{arch.name}/{'+'.join(packages)}"

    return Unpacked(cache.folder(name, lambda target: fetch(packages, target, arch)), arch)


def fetch(packages: Sequence[str], target: Path, arch: Architecture) -> None:
    """Unpack the packages and their dependencies into `target`. ToolError: it failed."""
    try:
        _fetch(packages, arch.name, target)
    except ToolError as error:
        raise ToolError(f"cannot fetch {' '.join(packages)} ({arch.name}): {error}") from None


def mirror() -> str:
    """The URL of Debian's archive, from this machine's apt configuration. ToolError: none."""
    listed = _run("apt-get", "--print-uris", "update")
    by_suite = {found["suite"]: found["mirror"] for found in _INDEX.finditer(listed)}
    for suite in (*_CODENAMES, *_ALIASES):
        if suite in by_suite:
            return by_suite[suite]
    raise ToolError("apt's configuration names no mirror of Debian's archive")


def _fetch(packages: Sequence[str], arch: str, target: Path) -> None:
    state = target / ".apt"
    apt = _make_apt_state(state, arch)
    with progress.bar(f"fetching {' '.join(packages)} ({arch})"):
        retry(lambda: _run(*apt, "update"))
        retry(lambda: _run(*apt, "--download-only", "install", *packages))
    for package in sorted((state / "archives").glob("*.deb")):
        _run("dpkg", "-x", str(package), str(target))
    shutil.rmtree(state)


def fetch_sources(packages: Sequence[str], target: Path) -> None:
    """Unpack the upstream archives (.orig.tar) of these source packages into `target`.

    ToolError: one is missing. Debian's own part is not needed, and a mirror may lack it."""
    state = target / ".apt"
    apt = _make_apt_state(state, architecture().name, kind="deb-src")
    try:
        with progress.bar(f"fetching the sources of {' '.join(packages)}"):
            retry(lambda: _run(*apt, "update"))
            source = (*apt, "source", "--download-only", *packages)
            retry(lambda: _get(packages, source, target))
    except (OSError, tarfile.TarError) as error:
        raise ToolError(f"cannot unpack the sources of {' '.join(packages)}: {error}") from None
    finally:
        shutil.rmtree(state)


def _get(packages: Sequence[str], source: Sequence[str], target: Path) -> None:
    state = target / ".apt"
    reason = "the mirror does not have them"
    try:
        _run(*source, cwd=state)
    except ToolError as error:
        reason = str(error)
    for package in packages:
        archives = [
            file for file in state.glob(f"{package}_*.orig.tar.*") if file.suffix != ".asc"
        ]
        try:
            if not archives:
                raise ToolError(reason)
            _extract(archives[0], target)
        except ToolError as error:  # the archive may be incomplete
            for file in archives:
                file.unlink()
            raise ToolError(f"cannot fetch the sources of {package}: {error}") from None


def _extract(archive: Path, target: Path) -> None:
    # ToolError: it is damaged. Any other error is this machine's own: no new download helps.
    try:
        mode: Any = f"r:{archive.suffix[1:]}"
        with tarfile.open(archive, mode) as files:
            files.extraction_filter = getattr(tarfile, "tar_filter", None)  # since 3.11.4
            files.extractall(target)
    except (tarfile.ReadError, EOFError, zlib.error) as error:
        raise ToolError(f"{archive.name}: {error}") from None


def _make_apt_state(state: Path, arch: str, kind: str = "deb") -> tuple[str, ...]:
    """Write apt's own state and configuration; -> the start of an apt-get command line."""
    for folder in ("lists/partial", "archives/partial"):
        (state / folder).mkdir(parents=True)
    keys = f"[signed-by={_KEYRING}] " if _KEYRING.exists() else ""
    (state / "sources.list").write_text(f"{kind} {keys}{mirror()} {SUITE} main\n")
    (state / "apt.conf").write_text(_APT_CONF.format(state=state, arch=arch))
    (state / "status").touch()
    return "apt-get", "-qq", "-y", "-c", str(state / "apt.conf")


def _run(*command: str, cwd: Path | None = None) -> str:
    """Run the command; -> its output. ToolError: its first line with an error."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    except FileNotFoundError:
        raise ToolError(f"{command[0]} is missing; it is part of Debian and Ubuntu") from None
    if done.returncode != 0:
        lines = done.stderr.splitlines()
        complaints = [line for line in lines if line.startswith("E:")] or lines or ["failed"]
        raise ToolError(f"{command[0]}: {complaints[0].removeprefix('E:').strip()}")
    return done.stdout
