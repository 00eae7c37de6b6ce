"""slotmq as an archive, for executors that have none of it.

On this machine they import it from where it is. On others they get it from `spark-submit
--py-files` (`slotmq telemetry pack` writes the archive), from an installed wheel, or from the
session, which sends it (session.py).
"""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path

_PACKAGES = ("slotmq_tools", "slotmq", "slotmq_boards")
_SEEDS = "host_tests"  # there in a clone of the repository: what `slotmq sim --spark` runs of it
_DATA = (".py", ".toml", ".json", ".tsv", ".html")


def archive(file: Path) -> Path:
    """Write the packages as a zip that Python imports from; all of it or nothing."""
    fresh = file.with_name(f".{file.name}.part")
    with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as made:
        there = (_SEEDS,) if find_spec(_SEEDS) else ()
        for package in (*_PACKAGES, *there):
            folder = Path(str(__import__(package).__file__)).resolve().parent
            for path in sorted(folder.rglob("*")):
                # Without its entry, Python finds no package that has no __init__.py.
                if path.suffix in _DATA or (path.is_dir() and path.name != "__pycache__"):
                    made.write(path, f"{package}/{path.relative_to(folder)}")
    return fresh.replace(file)
