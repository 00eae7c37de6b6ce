"""slotmq as an archive, for executors that have none of it.

On this machine they import it from where it is. On others they get it from `spark-submit
--py-files` (`slotmq telemetry pack` writes the archive), from an installed wheel, or from the
session, which sends it (session.py).
"""

from __future__ import annotations

import zipfile
from pathlib import Path

_PACKAGES = ("slotmq_telemetry", "slotmq_tools", "slotmq", "slotmq_boards")
_DATA = (".py", ".toml", ".json", ".tsv", ".html")


def archive(file: Path) -> Path:
    """Write the packages as a zip that Python imports from; all of it or nothing."""
    fresh = file.with_name(f".{file.name}.part")
    with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as made:
        for package in _PACKAGES:
            folder = Path(str(__import__(package).__file__)).resolve().parent
            for path in sorted(folder.rglob("*")):
                # Without its entry, Python finds no package that has no __init__.py.
                if path.suffix in _DATA or (path.is_dir() and path.name != "__pycache__"):
                    made.write(path, f"{package}/{path.relative_to(folder)}")
    return fresh.replace(file)
