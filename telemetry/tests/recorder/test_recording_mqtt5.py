"""The recorder with MQTT 5.0: payloads without properties, aliases, and the origin of bridged
messages.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from host_tests.broker.wire5 import codec
from host_tests.broker.wire5.client import Client
from host_tests.support.program import Run

from .test_recording import EVENT, MESSAGE, begin, segments

ORIGIN = "e6614104035f2d2b0000000c00012345"  # board, boot, seq
KEPT = bytes.fromhex("e6614104035f2d2b0c00000045230100").hex()  # as in the record
WITH_ORIGIN = 16
EVENT_WILL = 4
RETAIN = 4


def join(address: tuple[str, int], name: str) -> Client:
    client = Client(address)
    assert client.connect(codec.connect(name)).code == 0
    return client


def messages(folder: Path) -> list[tuple[str, int, str]]:
    """Topic, flags and payload of each message, as one who reads the segments finds them."""
    found = []
    for segment in segments(folder):
        topics = {}
        for record in segment["records"]:
            if record["type"] == 1 and record["flags"] == 1:
                topics[record["topic"]] = bytes.fromhex(record["payload"]).decode()
            if record["type"] == MESSAGE:
                topic = topics[record["topic"]]
                found.append((topic, record["flags"], bytes.fromhex(record["payload"]).hex()))
    return found


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_payload_is_recorded_without_its_properties(
    tmp_path: Path, runtime: str, qos: int
) -> None:
    run, address = begin(tmp_path, runtime)
    client = join(address, "sensor")
    client.publish("t/1", b"21.5", qos, content_type="text", user=[("unit", "C")])
    client.publish("t/2", b"first", qos, topic_alias=1)
    client.publish("", b"by alias", qos, topic_alias=1)
    client.sock.close()
    run.stop()
    expected = [("t/1", b"21.5"), ("t/2", b"first"), ("t/2", b"by alias")]
    assert messages(tmp_path) == [(topic, qos, data.hex()) for topic, data in expected]


def test_what_a_bridge_brings_keeps_who_has_recorded_it(tmp_path: Path, runtime: str) -> None:
    run, address = begin(tmp_path, runtime)
    client = join(address, "bridge")
    client.publish("t/1", b"21.5", 1, user=[("slotmq-origin", ORIGIN)])
    client.publish("t/1", b"22.0", 0, user=[("a", "b"), ("slotmq-origin", ORIGIN)])
    client.sock.close()
    run.stop()
    assert messages(tmp_path) == [
        ("t/1", 1 | WITH_ORIGIN, KEPT + b"21.5".hex()),
        ("t/1", WITH_ORIGIN, KEPT + b"22.0".hex()),
    ]


@pytest.mark.parametrize("value", ["", "e661", "x" * 32, ORIGIN + "00"])
def test_what_is_no_origin_is_none(tmp_path: Path, runtime: str, value: str) -> None:
    run, address = begin(tmp_path, runtime)
    client = join(address, "bridge")
    client.publish("t/1", b"21.5", 0, user=[("slotmq-origin", value)])
    client.sock.close()
    run.stop()
    assert messages(tmp_path) == [("t/1", 0, b"21.5".hex())]


def test_a_will_is_recorded_when_it_is_published(tmp_path: Path, runtime: str) -> None:
    run, address = begin(tmp_path, runtime)
    at_once = Client(address)
    will = codec.Will("w/1", b"gone", 1, retain=True)
    assert at_once.connect(codec.connect("one", will=will)).code == 0
    late = Client(address)
    delayed = codec.Will("w/2", b"late", 2, properties={"will_delay": 2})
    assert late.connect(codec.connect("two", will=delayed, session_expiry=60)).code == 0
    watcher = join(address, "watcher")
    watcher.subscribe("w/#", qos=2)
    late.sock.close()
    at_once.sock.close()
    assert [watcher.next().topic for _ in range(2)] == ["w/1", "w/2"]
    watcher.sock.close()
    run.stop()
    assert messages(tmp_path) == [("w/1", 1 | RETAIN, b"gone".hex()), ("w/2", 2, b"late".hex())]


@pytest.mark.parametrize("end", [Run.kill, Run.stop])
def test_wills_that_a_start_publishes_are_recorded(
    tmp_path: Path, runtime: str, end: Callable[[Run], None]
) -> None:
    """Of who was connected at the end: one goes out at once, one has a delay."""
    kept = "persistence true", f"persistence_location {tmp_path}/"
    run, address = begin(tmp_path, runtime, *kept)
    leavers = Client(address), Client(address)
    will = codec.Will("w/1", b"gone", 1, retain=True, properties={"content_type": "text"})
    assert leavers[0].connect(codec.connect("one", will=will)).code == 0
    delayed = codec.Will("w/2", b"late", 2, properties={"will_delay": 2})
    assert leavers[1].connect(codec.connect("two", will=delayed, session_expiry=60)).code == 0
    end(run)
    events = [r["flags"] for s in segments(tmp_path) for r in s["records"] if r["type"] == EVENT]
    assert EVENT_WILL not in events
    for client in leavers:
        client.sock.close()
    run, address = begin(tmp_path, runtime, *kept)
    watcher = join(address, "watcher")
    watcher.subscribe("w/#", qos=2)
    assert [watcher.next().topic for _ in range(2)] == ["w/1", "w/2"]
    watcher.sock.close()
    run.stop()
    assert [segment["head"]["boot"] for segment in segments(tmp_path)] == [1, 2]
    assert messages(tmp_path) == [("w/1", 1 | RETAIN, b"gone".hex()), ("w/2", 2, b"late".hex())]


def test_a_start_that_its_journal_refuses_takes_no_segments_place(
    tmp_path: Path, runtime: str
) -> None:
    kept = "persistence true", f"persistence_location {tmp_path}/"
    run, address = begin(tmp_path, runtime, *kept)
    for n in range(2):
        client = Client(address)
        assert client.connect(codec.connect(f"kept {n}", session_expiry=60)).code == 0
        client.sock.close()
    run.stop()
    before = {path.name: path.read_bytes() for path in (tmp_path / "ring").iterdir()}
    path = tmp_path / "slotmq.conf"
    path.write_text(path.read_text() + "limit sessions 1\nlimit connections 1\n")
    again = Run(tmp_path, runtime, "-c", path, "--board", "RPI_PICO_W")
    assert again.process.wait(30) == 1
    assert "raise the limit sessions" in again.everything()
    assert {path.name: path.read_bytes() for path in (tmp_path / "ring").iterdir()} == before
