"""The recorder over TCP: order, a kill, remote fetching of segments and the time."""

import json
import struct
import time
from pathlib import Path

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client
from host_tests.support.program import Run, conf
from slotmq_dev.golden import decode
from slotmq_tools.ports import free_port

DEF, MESSAGE, EVENT, ANCHOR = 1, 2, 3, 4


def begin(
    folder: Path, runtime: str, *lines: str, board: str = "RPI_PICO_W"
) -> tuple[Run, tuple[str, int]]:
    port = free_port()
    where = f"listener {port} 127.0.0.1", "allow_anonymous true", f"record_location {folder}/ring"
    path = conf(folder, *where, "record #", "record_flush_interval 1", *lines)
    run = Run(folder, runtime, "-c", path, "--board", board)
    run.headline()
    return run, ("127.0.0.1", port)


def join(address: tuple[str, int], name: str) -> Client:
    client = Client(address)
    assert client.connect(codec.connect(name)).code == 0
    return client


def segments(folder: Path) -> list[dict]:  # type: ignore[type-arg]
    return [decode(path.read_bytes()) for path in sorted((folder / "ring").glob("*.seg"))]


def payloads(found: list[dict]) -> list[bytes]:  # type: ignore[type-arg]
    each = (record for segment in found for record in segment["records"])
    return [bytes.fromhex(r["payload"]) for r in each if r["type"] == MESSAGE]


def burst(client: Client, first: int, count: int) -> list[bytes]:
    sent = [b"%d" % n + b"x" * 60 for n in range(first, first + count)]
    client.send(b"".join(codec.publish(f"t/{n % 7}", data, 0, 0) for n, data in enumerate(sent)))
    client.ping()
    return sent


def test_what_passes_is_recorded_in_order(tmp_path: Path, runtime: str) -> None:
    run, address = begin(tmp_path, runtime, "record_segment_size 4096")
    client = join(address, "sensor")
    client.subscribe("t/#")
    sent = [data for n in range(10) for data in burst(client, 30 * n, 30)]
    client.publish("t/1", b"once", 1)
    client.publish("t/1", b"twice", 2)
    client.sock.close()
    run.stop()
    found = segments(tmp_path)
    assert len(found) > 3
    assert payloads(found) == [*sent, b"once", b"twice"]
    every = [record["seq"] for segment in found for record in segment["records"]]
    assert every == list(range(len(every)))
    codes = [r["flags"] for s in found for r in s["records"] if r["type"] == EVENT]
    codes = [code for code in codes if code != 8]  # the heap, when it is looked at
    assert codes[:3] == [1, 2, 6]
    assert 3 in codes


def test_a_computers_recorder_finds_each_topic(tmp_path: Path, runtime: str) -> None:
    """Its native code is another one: long and short topics and payloads, in turn."""
    run, address = begin(tmp_path, runtime, "record_segment_size 65536", board="HOST")
    client = join(address, "sensor")
    client.subscribe("#")
    topics = ["a", "b", "ab", "room/1/temperature", "room/2/temperature", "x" * 90, "room/1/te"]
    sent = []
    for n in range(40):
        several = [(topics[(n * k) % 7], b"%d" % k + b"y" * (n * k % 150)) for k in range(40)]
        client.send(b"".join(codec.publish(topic, data, 0, 0) for topic, data in several))
        client.ping()
        client.receive_all()
        sent += several
    client.sock.close()
    run.stop()
    found = segments(tmp_path)
    assert len(found) > 2
    assert [pair for segment in found for pair in named(segment)] == sent
    every = [record["seq"] for segment in found for record in segment["records"]]
    assert every == list(range(len(every)))


def named(segment: dict) -> list[tuple[str, bytes]]:  # type: ignore[type-arg]
    """The messages of a segment with their topics."""
    topics = {}
    found = []
    for each in segment["records"]:
        payload = bytes.fromhex(each["payload"])
        if each["type"] == DEF and each["flags"] == 1:
            topics[each["topic"]] = payload.decode()
        if each["type"] == MESSAGE:
            found.append((topics[each["topic"]], payload))
    return found


def test_a_kill_loses_no_more_than_the_flush_interval(tmp_path: Path, runtime: str) -> None:
    run, address = begin(tmp_path, runtime)
    client = join(address, "sensor")
    sent = burst(client, 0, 40)
    time.sleep(2.5)
    run.kill()
    client.sock.close()
    assert payloads(segments(tmp_path)) == sent
    before = (tmp_path / "ring" / "00000000.seg").read_bytes()
    again, _ = begin(tmp_path, runtime)
    again.stop()
    assert (tmp_path / "ring" / "00000000.seg").read_bytes() == before
    assert [segment["head"]["boot"] for segment in segments(tmp_path)] == [1, 2]


def test_segments_are_fetched_and_the_time_is_told(tmp_path: Path, runtime: str) -> None:
    run, address = begin(tmp_path, runtime, "remote_admin true")
    client = join(address, "harvester")
    client.subscribe("$SLOTMQ/record/+/head", "mine")
    client.publish("$SLOTMQ/time", b"1795320988.250 40 harvester", 0)
    time.sleep(2.5)
    states = [p for p in client.receive_all() if p.topic.endswith("head")]
    state = json.loads(states[-1].payload)
    assert (state["boot"], state["segment"]) == (1, 0)
    data = b""
    while len(data) < state["length"]:
        ask = {"segment": 0, "offset": len(data), "length": 100, "reply": "mine"}
        client.publish(f"$SLOTMQ/record/{state['board']}/get", json.dumps(ask).encode(), 0)
        answer = client.next().payload
        segment, offset, length = struct.unpack("<III", answer[:12])
        assert (segment, offset) == (0, len(data))
        assert length >= state["length"]
        data += answer[12:]
    anchors = [r for r in decode(data)["records"] if r["type"] == ANCHOR]
    assert (anchors[-1]["flags"], anchors[-1]["payload"][:12]) == (3, "9c6c026bfa00")
    client.sock.close()
    run.stop()


def test_nobody_may_fetch_or_tell_the_time_by_default(tmp_path: Path, runtime: str) -> None:
    run, address = begin(tmp_path, runtime)
    client = join(address, "harvester")
    client.subscribe("$SLOTMQ/record/+/head")
    client.publish("$SLOTMQ/time", b"1795320988.250 40 harvester", 0)
    time.sleep(2.5)
    assert client.receive_all() == []
    client.sock.close()
    run.stop()
    records = segments(tmp_path)[0]["records"]
    assert 3 not in [r["flags"] for r in records if r["type"] == ANCHOR]
