"""Plants a fault in a copy of lib, and looks for it: `python -m host_tests.sim.planted`."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from .. import campaign
from . import faults, faults_journal
from .faults import Fault

LIB = campaign.ROOT / "lib" / "slotmq"
FAULTS = faults.FAULTS + faults_journal.FAULTS
MOST = 500  # seeds in which a fault must be found


def plant(fault: Fault, folder: Path) -> None:
    """A copy of the broker with that fault in it, to import from the folder."""
    shutil.copytree(LIB, folder / "slotmq")
    file = folder / "slotmq" / fault.file
    text = without_comments(file.read_text())
    wanted = without_comments(fault.text)
    if text.count(wanted) != 1:
        raise ValueError(f"{fault.name}: {fault.file} has its text {text.count(wanted)} times")
    file.write_text(text.replace(wanted, fault.planted))


def without_comments(text: str) -> str:
    """The text without what stands behind code, so that a comment can be written anew."""
    return re.sub(r"  # .*", "", text)


def find(fault: Fault, most: int = MOST) -> tuple[int, str]:
    """How many seeds it takes, and what failed; 0: it was not found."""
    with tempfile.TemporaryDirectory(prefix="slotmq-planted-") as name:
        plant(fault, Path(name))
        command = [
            sys.executable,
            str(campaign.RUNNER),
            str(fault.first),
            str(most),
            str(campaign.STEPS),
        ]
        environment = campaign.environment("cpython", Path(name))
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout
            for seeds, line in enumerate(process.stdout, 1):
                if line.startswith("FAIL"):
                    process.kill()
                    return seeds, line.partition(" ")[2].strip()
        return 0, ""


@click.command()
@click.argument("words", nargs=-1)
def main(words: tuple[str, ...]) -> None:
    """Plant every fault, or those with a word in their name, and say which seed finds it."""
    chosen = [fault for fault in FAULTS if not words or any(word in fault.name for word in words)]
    missed = 0
    for fault in chosen:
        seeds, failure = find(fault)
        missed += not seeds
        click.echo(f"{seeds or 'not found':>9}  {fault.name}: {failure[:100]}")
    if missed:
        raise click.ClickException(f"{missed} of {len(chosen)} faults were not found")


if __name__ == "__main__":
    main()
