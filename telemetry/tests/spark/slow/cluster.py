"""A standalone cluster of Spark on loopback: a master, two workers, and their executors."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyspark

from slotmq_telemetry.session import find_java
from slotmq_tools.ports import free_port

_TIMEOUT_S = 240.0
_SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


# As in conftest.QUICK: there is little data, and everything of it starts more than once.
_QUICK = """
spark.sql.shuffle.partitions      2
spark.driver.memory               600m
spark.executor.memory             600m
spark.driver.extraJavaOptions     -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
spark.executor.extraJavaOptions   -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
"""


def environment(folder: Path) -> dict[str, str]:
    """All on loopback, with this Python; the packages come as files, not by PYTHONPATH.
    `folder` holds what is set for every Spark that is started so."""
    settings = folder / "conf" / "spark-defaults.conf"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(_QUICK)
    found = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    java = find_java()
    return (found if java is None else found | {"JAVA_HOME": str(java)}) | {
        "SPARK_CONF_DIR": str(settings.parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        "PYSPARK_PYTHON": sys.executable,
    }


class Cluster:
    """Started when made; `stop` ends what it has started, and nothing else."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        port = free_port()
        self.master = f"spark://127.0.0.1:{port}"
        self.folder = folder
        self.environment = environment(folder)
        self._processes: list[subprocess.Popen[bytes]] = []
        here = ["--host", "127.0.0.1", "--webui-port", "0"]
        self._start("master", "org.apache.spark.deploy.master.Master", *here, "--port", str(port))
        self._wait_for("master", "I have been elected leader")
        for number in range(workers):
            name = f"worker-{number}"
            options = [*here, "--cores", "1", "--memory", "1g", "--work-dir", str(folder / name)]
            self._start(name, "org.apache.spark.deploy.worker.Worker", *options, self.master)
        for number in range(workers):
            self._wait_for(f"worker-{number}", "Successfully registered with master")

    def _start(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [_SPARK_CLASS, *command],
                stdout=log,
                stderr=log,
                env=self.environment,
                start_new_session=True,
            )
            self._processes.append(process)

    def _wait_for(self, name: str, text: str) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        log = self.folder / f"{name}.log"
        while text not in log.read_text(errors="replace"):
            assert time.monotonic() < deadline, log.read_text(errors="replace")[-2000:]
            time.sleep(0.1)

    def stop(self) -> None:
        """Workers first, with what they have started."""
        for process in reversed(self._processes):
            kill_tree(process.pid)
            process.wait()


def kill_tree(pid: int) -> None:
    """kill -9, for a process and all below it."""
    try:
        parent = psutil.Process(pid)
        doomed = [*parent.children(recursive=True), parent]
    except psutil.NoSuchProcess:
        return
    for process in doomed:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(doomed, timeout=10)
