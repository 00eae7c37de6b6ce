"""`slotmq harvest` from a board: over the serial line, and from the running broker."""

import json
from pathlib import Path

from slotmq_telemetry.harvest import segments as segment
from slotmq_tools.deploy.repl import Repl
from telemetry.tests.conftest import Folder, identities, recorder

from .conftest import Deployed

_ATTEMPTS = 8

CONF = """
listener 1883
allow_anonymous true
record #
remote_admin true
record_segment_size 4096
record_budget 32768
record_flush_interval 1
"""


def test_harvest_over_the_serial_line(board: Deployed, tmp_path: Path) -> None:
    one = recorder(messages=300)
    with Repl(board.board.device) as line:
        line.run("import os\ntry:\n os.mkdir('/record')\nexcept OSError: pass")
        line.remove([path for path in line.hashes() if path.startswith("/record/")])
        for number, data in one.segments.items():
            line.write(f"/record/{number:08x}.seg", data)
    status, said = board.cli("harvest", tmp_path / "field", "--port", board.board.device)
    assert status == 0 and f"{len(one.segments)} segments" in said, said
    folder = Folder(tmp_path / "field")
    assert folder.identities() == identities(one)
    status, said = board.cli(
        "harvest", tmp_path / "field", "--port", board.board.device, "--delete"
    )
    assert status == 0 and "nothing new" in said, said
    with Repl(board.board.device) as line:
        left = [path for path in line.hashes() if path.startswith("/record/")]
        assert left == [f"/record/{one.newest:08x}.seg"]
        line.remove(left)


def test_harvest_from_the_running_broker(board: Deployed, tmp_path: Path) -> None:
    board.deploy(CONF)
    client = board.connect("sensor")
    for number in range(60):
        client.publish("room/1", b"%d" % number, qos=1)
    board.hang_up()
    where = "{}:{}".format(*board.address)
    folder = Folder(tmp_path / "field")
    for _ in range(_ATTEMPTS):  # some are flushed later
        if harvested(board, folder, where) >= 60:
            break
    # `slotmq deploy` has published a test message.
    said = {b"%d" % number for number in range(60)}
    assert messages(folder) - said <= {b"is it there?"} and said <= messages(folder)


def harvested(board: Deployed, folder: Folder, where: str) -> int:
    status, said = board.cli("harvest", folder.path, "--broker", where)
    assert status == 0, said
    return len(messages(folder))


def messages(folder: Folder) -> set[bytes]:
    """The payloads in all segments."""
    assert all(json.dumps(line) for line in folder.lines())
    found = set()
    for _, data in folder.segments():
        for at in segment.walk(data).offsets:
            _, length, kind, *_ = segment.RECORD.unpack_from(data, at)
            if kind == segment.MESSAGE:
                found.add(data[at + segment.RECORD_SIZE : at + length])
    return found
