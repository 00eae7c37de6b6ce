"""The cache folder, for all that the tools fetch or build.

It is `$SLOTMQ_CACHE`, else `$XDG_CACHE_HOME/slotmq`, else `~/.cache/slotmq`. A folder in it is
complete or absent: it is filled under another name and then renamed. A lock prevents two
processes from filling it at the same time. The cache may be deleted while no process uses it.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def root() -> Path:
    """The path of the cache folder, which may not exist yet."""
    if own := os.environ.get("SLOTMQ_CACHE"):
        return Path(own).absolute()
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared).absolute() / "slotmq"
    return Path.home() / ".cache" / "slotmq"


def folder(name: str, fill: Callable[[Path], None]) -> Path:
    """The folder `name` of the cache. If it is missing, `fill(empty_folder)` makes it."""
    target = root() / name
    if target.is_dir():
        return target
    with _locked(name):
        if not target.is_dir():
            _fill_and_rename(target, fill)
    return target


def _fill_and_rename(target: Path, fill: Callable[[Path], None]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=target.parent))
    try:
        fill(partial)
        partial.chmod(0o755)  # mkdtemp made it 0700
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """Hold the lock of the folder `name`; the system releases it if this process dies."""
    locks = root() / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with (locks / name.replace("/", "+")).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
