"""`slotmq harvest --broker` from the broker's own recorder while it runs, on both runtimes."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from host_tests.broker.wire.process import BrokerProcess
from telemetry.tests.conftest import Folder

from .recording import MESSAGE, records

MESSAGES = 150
pytestmark = pytest.mark.timeout(300)  # many processes, on a machine that may be busy
CONF = """
record #
remote_admin true
record_segment_size 4096
record_budget 65536
record_flush_interval 1
record_location {folder}/record
sys_interval 0
"""


@pytest.fixture
def recording(runtime: str, tmp_path: Path) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(runtime, CONF.format(folder=tmp_path), tmp_path)
    yield broker
    broker.stop()


def harvested(broker: BrokerProcess, folder: Folder, *options: str) -> str:
    where = f"{broker.address[0]}:{broker.address[1]}"
    command = [sys.executable, "-m", "slotmq_tools.cli", "harvest", str(folder.path)]
    ran = subprocess.run([*command, "--broker", where, *options],
                         capture_output=True, text=True, check=False)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def payloads(folder: Folder) -> list[bytes]:
    """Of the messages, each once, in the order of their numbers."""
    found: dict[tuple[int, int], bytes] = {}
    for (_, boot, _), segment in folder.segments():
        at = 32
        for seq, payload in records(segment):
            if segment[at + 6] == MESSAGE:
                found[boot, seq] = payload
            at += 20 + len(payload)
    return [found[key] for key in sorted(found)]


def publish(broker: BrokerProcess, numbers: range) -> None:
    client = paho.Client(CallbackAPIVersion.VERSION2)
    client.connect(*broker.address)
    client.loop_start()
    for number in numbers:
        client.publish(f"room/{number % 5}", b"%d" % number, 1).wait_for_publish(10)
    client.disconnect()
    client.loop_stop()


def complete(broker: BrokerProcess, folder: Folder, count: int) -> list[bytes]:
    """Harvests until what waits for its interval has come too."""
    for _ in range(20):
        harvested(broker, folder)
        if len(payloads(folder)) >= count:
            break
    return payloads(folder)


def test_what_passed_through_the_broker_is_harvested_once(
    recording: BrokerProcess, folder: Folder
) -> None:
    publish(recording, range(MESSAGES))
    assert "time sent" in harvested(recording, folder, "--set-time")
    expected = [b"%d" % number for number in range(MESSAGES)]
    assert complete(recording, folder, MESSAGES) == expected
    publish(recording, range(MESSAGES, 2 * MESSAGES))
    expected += [b"%d" % number for number in range(MESSAGES, 2 * MESSAGES)]
    assert complete(recording, folder, 2 * MESSAGES) == expected


@pytest.fixture
def closed(runtime: str, tmp_path: Path) -> Iterator[BrokerProcess]:
    text = CONF.format(folder=tmp_path).replace("remote_admin true", "remote_admin false")
    broker = BrokerProcess(runtime, text, tmp_path)
    yield broker
    broker.stop()


def test_without_remote_admin_nothing_is_harvested(closed: BrokerProcess, folder: Folder) -> None:
    where = f"{closed.address[0]}:{closed.address[1]}"
    command = [sys.executable, "-m", "slotmq_tools.cli", "harvest", str(folder.path)]
    ran = subprocess.run(
        [*command, "--broker", where], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1 and "remote_admin true" in ran.stderr
    assert folder.lines() == []
