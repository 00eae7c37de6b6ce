"""Chromium without a window, from Debian, in one process."""

import shutil
from functools import cache as once
from pathlib import Path

from slotmq_tools import cache
from slotmq_tools.fetch import debian

_FOLDER = "usr/lib/chromium"
_PROGRAM = "chromium-headless-shell"
# It has no children: they would be started as /proc/self/exe, which is the loader here.
_OPTIONS = (
    *("--headless", "--single-process", "--no-zygote", "--no-sandbox", "--disable-gpu"),
    *("--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run"),
)


def command(profile: Path, *options: str) -> list[str]:
    """The command line that opens the URL in its last argument. `profile`: a folder for it.

    ToolError: it cannot be fetched."""
    loader, libraries = _placed()
    program = loader.with_name(_PROGRAM)
    paths = f"{libraries}:{libraries}/pulseaudio"
    start = [str(loader), "--library-path", paths, str(program)]
    return [*start, *_OPTIONS, f"--user-data-dir={profile}", *options]


@once
def _placed() -> tuple[Path, Path]:
    """The loader and the folder with the libraries.

    Chromium looks for its files beside /proc/self/exe, so the loader is copied there."""
    unpacked = debian.unpack(["chromium-headless-shell"])
    libraries = unpacked.root / "usr/lib" / unpacked.arch.triplet

    def fill(target: Path) -> None:
        for file in (unpacked.root / _FOLDER).iterdir():
            (target / file.name).symlink_to(file)
        shutil.copy(libraries / unpacked.arch.loader, target)

    return cache.folder("chromium", fill) / unpacked.arch.loader, libraries
