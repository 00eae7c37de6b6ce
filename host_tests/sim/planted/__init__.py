"""Planted faults: small edits of the broker that the simulator must find.

    python -m host_tests.sim.planted              # every fault
    python -m host_tests.sim.planted DUP alias    # those with such a word in their name

A fault is planted in a copy of lib/slotmq, and seeds run with that copy until one of them fails.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .. import campaign
from . import faults, faults_access, faults_bridge, faults_fast, faults_journal, faults_streams
from .faults import Fault

LIB = campaign.ROOT / "lib" / "slotmq"
_FILES = faults, faults_access, faults_fast, faults_streams, faults_journal, faults_bridge
FAULTS: tuple[Fault, ...] = tuple(fault for file in _FILES for fault in file.FAULTS)
MOST = 500  # seeds in which a fault must be found
MOST_OF_BRIDGE = 60  # the same between two brokers


def plant(fault: Fault, folder: Path) -> None:
    """Copy the broker to the folder, with this fault in it."""
    shutil.copytree(LIB, folder / "slotmq")
    (folder / "slotmq" / fault.file).write_text(with_fault(fault))


def with_fault(fault: Fault) -> str:
    """The file of the broker with this fault. ValueError: it has not the fault's text, once."""
    text = without_comments((LIB / fault.file).read_text())
    wanted = without_comments(fault.text)
    if text.count(wanted) != 1:
        raise ValueError(f"{fault.name}: {fault.file} has its text {text.count(wanted)} times")
    return text.replace(wanted, fault.planted)


def without_comments(text: str) -> str:
    """Drop the comments at the ends of lines: a fault's text need not repeat them."""
    return re.sub(r"  # .*", "", text)


def find(fault: Fault) -> tuple[int, str]:
    """Return how many seeds it took, and the failure; 0 if the fault was not found."""
    most = MOST_OF_BRIDGE if fault.where else MOST
    with tempfile.TemporaryDirectory(prefix="slotmq-planted-") as name:
        plant(fault, Path(name))
        seeds = (str(fault.first), str(most), str(campaign.STEPS), "", fault.where)
        with subprocess.Popen(
            [sys.executable, str(campaign.RUNNER), *seeds],
            env=campaign.environment("cpython", Path(name)),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            assert process.stdout
            for count, line in enumerate(process.stdout, 1):
                if line.startswith("FAIL"):
                    process.kill()
                    return count, line.partition(" ")[2].strip()
        return 0, ""
