"""mosquitto, Node.js and valgrind start, whether they are installed or fetched."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from slotmq_dev.peers import mosquitto, node, valgrind


@pytest.mark.parametrize("program", [mosquitto.publish, mosquitto.subscribe])
def test_mosquitto_clients_start(program: Callable[[], list[str]]) -> None:
    answer = subprocess.run([*program(), "--help"], capture_output=True, text=True, check=False)
    assert "mqtt client" in answer.stdout


def test_mosquitto_starts() -> None:
    answer = subprocess.run(
        [*mosquitto.broker(), "-h"], capture_output=True, text=True, check=False
    )
    assert answer.stdout.startswith("mosquitto version 2")


def test_node_finds_the_packages(tmp_path: Path) -> None:
    script = tmp_path / "script.js"
    script.write_text('console.log(typeof require("mqtt").connect, typeof require("aedes").Aedes)')
    command, environment = node.command(script)
    assert subprocess.check_output(command, env=environment, text=True) == "function function\n"


def test_valgrind_counts_instructions(tmp_path: Path) -> None:
    command, environment = valgrind.command()
    options = ["--tool=callgrind", f"--callgrind-out-file={tmp_path}/out"]
    answer = subprocess.run(
        [*command, *options, "/bin/true"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    counted = answer.stderr.rpartition("Collected :")[2].split()[0]
    assert int(counted) > 1000
