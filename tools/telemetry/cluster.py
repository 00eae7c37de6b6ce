"""A Spark session whose executors can import slotmq, wherever they run.

On this machine they import it from where it is. On others they get it from `spark-submit
--py-files` (`slotmq telemetry pack` writes the archive), from an
installed wheel, or from the session, which sends it.
"""

from __future__ import annotations

import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import SparkSession

from .session import start

_PACKAGES = ("slotmq_tools", "slotmq", "slotmq_boards")
_SEEDS = "host_tests"  # there in a clone of the repository: what `slotmq sim --spark` runs of it
_DATA = (".py", ".toml", ".json", ".tsv", ".html")


def session(master: str | None, settings: dict[str, str] | None = None) -> SparkSession:
    """As session.start, for any master."""
    spark = start(master, settings)
    is_here = (spark.conf.get("spark.master") or "local").startswith("local")
    has_it = is_here or spark.conf.get("spark.submit.pyFiles", "")
    if (master or "").startswith("sc://") or not has_it:
        folder = Path(tempfile.mkdtemp(prefix="slotmq-"))
        spark.addArtifacts(str(archive(folder / "slotmq.zip")), pyfile=True)
    return spark


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
