"""`slotmq inspect`: five tables have all that a journal contains; another file is refused."""

import sqlite3
from binascii import crc32
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from struct import calcsize
from typing import Any

import pytest
from click.testing import CliRunner

from host_tests.broker.unit.journal.media import Ram
from slotmq import Broker, Limits, Settings
from slotmq.journal import records
from slotmq.journal.medium_file import FileMedium
from slotmq.journal.medium_flash import FlashMedium
from slotmq.journal.restore import restore
from slotmq_tools import cli
from slotmq_tools.journal import tables
from slotmq_tools.journal.schema import RECORDS
from slotmq_tools.ports import free_port

from ..broker.wire5 import codec
from ..broker.wire5.client import Client
from ..support.program import Run, conf

SNAPSHOT = 20000


def test_format_md_has_the_fields_of_each_record() -> None:
    page = (Path(__file__).parents[2] / "lib" / "FORMAT.md").read_text()
    for number, (name, layout, fields, _) in RECORDS.items():
        sizes = [calcsize(">" + kind) for kind in layout[1:]]
        assert getattr(records, f"{name}_SIZE", 2) == sum(sizes), name
        shown = ", ".join(f"{field} {size}" for field, size in zip(fields, sizes, strict=True))
        assert f"\n| {number} | {name} | {shown} |" in page


def inspected(file: Path, out: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of the five tables, as dictionaries."""
    done = CliRunner().invoke(cli.main, ["inspect", str(file), "--sqlite", str(out)])
    assert done.exit_code == 0, done.output
    with closing(sqlite3.connect(out)) as database:
        database.row_factory = sqlite3.Row
        return {
            name: [dict(row) for row in database.execute(f"SELECT * FROM {name}")]
            for name in ("config", "clients", "subs", "messages", "retain")
        }


@pytest.mark.parametrize("end", [Run.kill, Run.stop])
def test_the_tables_have_all_that_a_journal_holds(
    tmp_path: Path, end: Callable[[Run], None]
) -> None:
    port = free_port()
    lines = ("persistence true", f"persistence_location {tmp_path}/", "allow_anonymous true")
    path = conf(tmp_path, f"listener {port} 127.0.0.1", *lines, "qos2_delivery release")
    run = Run(tmp_path, "cpython", "-c", path)
    run.headline()
    reader = Client(("127.0.0.1", port))
    reader.connect(codec.connect("reader", clean=False, session_expiry=600))
    reader.subscribe("$share/group/t/+", qos=1, subscription_id=300)
    reader.subscribe("u", qos=2, options=8, subscription_id=5)
    reader.send(codec.DISCONNECT)
    writer = Client(("127.0.0.1", port))
    properties: dict[str, Any] = {"will_delay": 40, "message_expiry": 70}
    will = codec.Will("will/topic", b"gone", 1, True, properties)
    writer.connect(codec.connect("writer", clean=False, session_expiry=900, will=will))
    more: dict[str, Any] = {"content_type": "text", "user": (("from", "me"),)}
    writer.publish("t/x", b"one", 1, message_expiry=50, **more)
    writer.send(codec.publish("u", b"held", 2, 77))
    writer.expect(codec.Ack(codec.PUBREC, 77))
    writer.publish("r", b"kept", 2, retain=True, message_expiry=500)
    end(run)
    reader.sock.close()
    writer.sock.close()
    found = inspected(tmp_path / "slotmq.db", tmp_path / "out.sqlite")
    config = {row["key"]: row["value"] for row in found["config"]}
    assert (config["format"], config["tail"]) == (records.VERSION - 1, "whole")
    away, there = found["clients"]
    assert (away["client_id"], away["expiry_s"], away["was_connected"]) == ("reader", 600, 0)
    assert 0 <= away["offline_s"] < 60
    assert away["will_topic"] is away["will_qos"] is None
    assert (there["client_id"], there["was_connected"], there["offline_s"]) == ("writer", 1, None)
    assert (there["will_topic"], there["will_payload"]) == ("will/topic", b"gone")
    assert (there["will_qos"], there["will_retain"], there["will_delay_s"]) == (1, 1, 40)
    shared, own = sorted(found["subs"], key=lambda row: str(row["filter"]))
    assert (shared["filter"], shared["share"], shared["identifier"]) == ("t/+", "group", 300)
    assert (own["filter"], own["qos"], own["options"], own["share"]) == ("u", 2, 8, None)
    out, held = found["messages"]
    assert (out["client_id"], out["direction"], out["topic"]) == ("reader", "out", "t/x")
    assert (out["payload"], out["qos"], out["identifier"]) == (b"one", 1, 300)
    assert 0 < out["expires_in_s"] <= 50
    assert out["properties"] == "content-type=text; user-property=from=me"
    assert (held["direction"], held["packet_id"], held["payload"]) == ("in", 77, b"held")
    (kept,) = found["retain"]
    assert (kept["topic"], kept["payload"], kept["qos"]) == ("r", b"kept", 2)
    assert 0 < kept["expires_in_s"] <= 500
    shown = CliRunner().invoke(cli.main, ["inspect", str(tmp_path / "slotmq.db")]).output
    for text in ("reader", "will/topic", "t/+", "held", "kept", "group"):
        assert text in shown


def test_a_clean_session_has_no_rows_of_the_persistent_one_before_it(tmp_path: Path) -> None:
    port = free_port()
    lines = ("persistence true", f"persistence_location {tmp_path}/", "allow_anonymous true")
    run = Run(tmp_path, "cpython", "-c", conf(tmp_path, f"listener {port} 127.0.0.1", *lines))
    run.headline()
    kept = Client(("127.0.0.1", port))
    kept.connect(codec.connect("same", clean=False, session_expiry=600))
    kept.send(codec.publish("t", b"half done", 2, 77))
    kept.expect(codec.Ack(codec.PUBREC, 77, 16))  # no matching subscribers
    clean = Client(("127.0.0.1", port))
    will = codec.Will("will", b"gone", 1, False, {})
    clean.connect(codec.connect("same", clean=True, will=will))
    run.kill()
    kept.sock.close()
    clean.sock.close()
    found = inspected(tmp_path / "slotmq.db", tmp_path / "out.sqlite")
    assert [(row["client_id"], row["expiry_s"]) for row in found["clients"]] == [("same", 0)]
    assert found["messages"] == []


def test_a_payload_of_the_longest_packet_is_read(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    payload = b"x" * ((1 << 20) - 11 - 7) + b"the end"  # max_packet, less the headers
    started(FileMedium(str(file), SNAPSHOT, 1 << 24), payload)
    (row,) = inspected(file, tmp_path / "out.sqlite")["retain"]
    assert row["payload"] == payload


def test_control_characters_of_a_payload_are_escaped(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    payload = "\x1b[31mred\a\r\n\u202eder \u9e1f\x85".encode() + b"\xff"
    started(FileMedium(str(file), SNAPSHOT, 1 << 20), payload)
    shown = CliRunner().invoke(cli.main, ["inspect", str(file)]).output
    assert r"\x1b[31mred\x07\r\n\u202eder 鸟\x85\xff" in shown
    assert all(one.isprintable() or one == "\n" for one in shown)


def started(medium: object, payload: bytes = b"kept", topic: str = "topic") -> Any:
    """Start a broker on the medium and add one retained message to its journal."""
    broker = Broker(Limits(message_bytes=1 << 21, max_packet=1 << 20), Settings(sys_interval=0))
    journal = restore(broker, medium)
    broker.publish(topic, payload, retain=True)
    assert journal.commit()
    journal.close()
    return journal


def test_a_copy_of_a_flash_region_can_be_read(tmp_path: Path) -> None:
    device = Ram(16, 4096)
    started(FlashMedium(device, SNAPSHOT))
    file = tmp_path / "region.bin"
    file.write_bytes(device.data)
    found = inspected(file, tmp_path / "out.sqlite")
    assert [row["topic"] for row in found["retain"]] == ["topic"]


BLOCK, PAGE = 4096, 256


@pytest.mark.parametrize(
    ("rotten", "newer"),
    [((), "none"), ((PAGE + 3,), "generation 2"), ((0, PAGE // 2), "headers")],
    ids=["whole", "head", "header"],
)
def test_it_shows_the_generation_that_a_start_would_use(
    tmp_path: Path, rotten: tuple[int, ...], newer: str
) -> None:
    device = Ram(16, BLOCK)
    for topic in ("first", "second"):
        started(FlashMedium(device, SNAPSHOT), topic=topic)
    newest = FlashMedium(device, SNAPSHOT)
    newest.open(newest.generations()[0])
    for at in rotten:
        device.data[newest.first * BLOCK + at] ^= 1
    file = tmp_path / "region.bin"
    file.write_bytes(device.data)
    found = inspected(file, tmp_path / "out.sqlite")
    broker = Broker(Limits(), Settings(sys_interval=0))
    said: list[str] = []
    restore(broker, FlashMedium(device, SNAPSHOT), said.append)
    assert [row["topic"] for row in found["retain"]] == ["first", "second"][: 2 - bool(rotten)]
    assert len(found["retain"]) == broker.retained.names.count()
    assert {row["key"]: row["value"] for row in found["config"]}["newer"].count(newer) == 1
    assert bool(said) == bool(rotten)


def test_a_read_only_file_is_read_and_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    started(FileMedium(str(file), SNAPSHOT, 1 << 20))
    file.chmod(0o400)
    before = file.stat().st_mtime_ns
    assert len(inspected(file, tmp_path / "out.sqlite")["retain"]) == 1
    assert file.stat().st_mtime_ns == before


def wrong(record: bytes, generation: bytes) -> bytes:
    return record + crc32(generation + record).to_bytes(4, "big")


NEWER = bytes((records.HEAD, 5, records.VERSION + 1))  # the beginning of a record HEAD


def headed(head: bytes, data: bytes) -> bytes:
    return head + crc32(head).to_bytes(4, "little") + data[16:]


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda _: None, "No such file"),
        (lambda _: b"", "not a journal's"),
        (lambda _: b"SQLite format 3\0" * 512, "not a journal's"),
        (lambda data: data[:20], "no whole commit"),
        (lambda data: b"x" + data[1:], "not a journal's"),
        (lambda data: headed(data[:7] + b"\2" + data[8:12], data), "version 2"),
        (lambda data: headed(data[:8] + b"\xff" * 4, data), "not a journal's"),
        (
            lambda data: data[:16] + wrong(NEWER + data[19:23], data[19:23]) + data[27:],
            f"version {NEWER[2]}",
        ),
        (
            lambda data: (
                data
                + wrong(b"\x0b\x04\0\0\0\x63", data[19:23])
                + wrong(b"\x0d\x04\0\0\0\0", data[19:23])
            ),
            "contradict",
        ),
    ],
    ids=[
        "missing",
        "empty",
        "foreign",
        "cut",
        "damaged",
        "newer",
        "last",
        "newer-records",
        "contradiction",
    ],
)
def test_what_is_no_journal_is_refused_in_one_line(
    tmp_path: Path, make: Any, complaint: str
) -> None:
    file = tmp_path / "journal"
    started(FileMedium(str(file), SNAPSHOT, 1 << 20))
    data = make(file.read_bytes())
    file.unlink()
    if data is not None:
        file.write_bytes(data)
    refused(file, complaint)


def refused(file: Path, complaint: str, *more: str) -> None:
    done = CliRunner().invoke(cli.main, ["inspect", str(file), *more])
    assert done.exit_code == 1
    (line,) = done.output.splitlines()
    assert str(file) in line or more
    assert complaint in line


def test_a_folder_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, "directory")


def test_a_database_that_exists_or_cannot_be_created(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    started(FileMedium(str(file), SNAPSHOT, 1 << 20))
    refused(file, "exists", "--sqlite", str(file))
    refused(file, "unable to open", "--sqlite", str(tmp_path / "none" / "out"))


def test_a_database_whose_writing_failed_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, out = tmp_path / "journal", tmp_path / "out"
    started(FileMedium(str(file), SNAPSHOT, 1 << 20))
    with monkeypatch.context() as wrong:
        wrong.setitem(tables.TABLES, "retain", ("topic", "topic"))
        refused(file, "duplicate column", "--sqlite", str(out))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal", "journal.reserve"]
    assert len(inspected(file, out)["retain"]) == 1


def test_a_damaged_commit_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    started(FileMedium(str(file), SNAPSHOT, 1 << 20))
    data = bytearray(file.read_bytes())
    data[-12] ^= 1  # in the last record before the last COMMIT
    file.write_bytes(data)
    found = inspected(file, tmp_path / "out.sqlite")
    assert found["retain"] == []
    assert {row["key"]: row["value"] for row in found["config"]}["tail"] == "damaged"
