"""Compilers unpacked from Debian that run on any Linux.

A compiler starts other programs (cc1, as, ld), which would load the machine's libraries and not
those they were built with. So each program is renamed to NAME.real, and a script in its place
starts it through the unpacked loader.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from slotmq_tools import cache
from slotmq_tools.errors import ToolError
from slotmq_tools.fetch import debian
from slotmq_tools.fetch.retry import retry

_PACKAGES = ("gcc-arm-none-eabi", "libnewlib-arm-none-eabi", "tcc", "libc6-dev")
_CMAKE = "cmake>=3.25,<4"  # the SDK's files need an older one than 4
_PROGRAMS = ("usr/bin", "usr/lib/arm-none-eabi/bin", "usr/lib/gcc/arm-none-eabi", "usr/libexec")
_ELF = b"\x7fELF"
# The variants of newlib for the RP2040; of the C++ library only the files must exist.
_NEWLIB = "usr/lib/arm-none-eabi"
_VARIANTS = (".", "thumb/v6-m/nofp")
_EMPTY = ("libstdc++.a", "libstdc++_nano.a", "libsupc++.a", "libsupc++_nano.a")
_EMPTY_ARCHIVE = b"!<arch>\n"
_SCRIPT = """\
#!/bin/sh
exec {loader} --library-path {libraries} --argv0 "$0" "$0.real" "$@"
"""


def unpack(target: Path) -> debian.Unpacked:
    """Unpack the compilers into a folder. ToolError: they cannot be fetched."""
    arch = debian.architecture()
    debian.fetch(_PACKAGES, target, arch)
    unpacked = debian.Unpacked(target, arch)
    for program in list(_programs(unpacked.root)):
        _wrap(program, unpacked)
    newlib = unpacked.root / _NEWLIB
    (newlib / "lib").symlink_to("newlib")
    (newlib / "include").symlink_to("../../include/newlib")
    for variant in _VARIANTS:
        for name in _EMPTY:
            (newlib / "newlib" / variant / name).write_bytes(_EMPTY_ARCHIVE)
    return unpacked


def slirp() -> debian.Unpacked:
    """slirp, the other end of PPP: it connects the board to this computer's network."""
    return debian.unpack(["slirp"])


def cmake() -> Path:
    """The machine's cmake, or PyPI's. ToolError: pip cannot install it."""
    if installed := shutil.which("cmake"):
        return Path(installed)
    return (
        cache.folder("cmake", lambda target: retry(lambda: _install_cmake(target)))
        / "cmake/data/bin/cmake"
    )


def _install_cmake(target: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target), _CMAKE]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["failed"])[-1]
        raise ToolError(f"pip cannot install {_CMAKE} ({reason}); `apt install cmake` helps too")


def _programs(root: Path) -> Iterator[Path]:
    for folder in _PROGRAMS:
        for path in (root / folder).rglob("*"):
            if path.is_file() and not path.is_symlink() and os.access(path, os.X_OK):
                with path.open("rb") as file:
                    if file.read(4) == _ELF and ".so" not in path.name:
                        yield path


def _wrap(program: Path, unpacked: debian.Unpacked) -> None:
    start = unpacked.command("")
    loader, libraries = start[0], start[2]
    program.rename(program.with_name(program.name + ".real"))
    program.write_text(_SCRIPT.format(loader=loader, libraries=libraries))
    program.chmod(0o755)
