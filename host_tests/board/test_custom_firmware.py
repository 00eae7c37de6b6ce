"""Custom firmware as in docs/firmware.md: a journal in raw flash, and more clients."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from host_tests.broker.wire import codec
from slotmq_dev.emulator import image
from slotmq_tools.cli import main
from slotmq_tools.deploy import backup
from slotmq_tools.deploy.repl import Repl

from .conftest import Deployed

CLIENTS = 8
CONF = f"""\
listener 1883
allow_anonymous true
persistence true
limit connections {CLIENTS}
limit sessions 12
limit tcp_bytes 31000
"""


def firmware() -> Path:
    return image.build().own


@pytest.fixture(scope="module")
def kept(board: Deployed) -> Deployed:
    """The board with CONF, a session, a message for it and a retained one in its journal."""
    board.deploy(CONF)
    away = board.connect("away", clean=False)
    away.subscribe("jobs/+", qos=1)
    away.disconnect()
    sender = board.connect("sender")
    sender.publish("jobs/1", b"at qos 1", 1)
    sender.publish("state", b"retained", 1, retain=True)
    return board


def test_messages_survive_power_cuts_in_raw_flash(kept: Deployed) -> None:
    board = kept
    board.power_cycle()
    sender = board.connect("sender")
    sender.publish("jobs/2", b"after a cut", 1)
    board.power_cycle()  # a third within a minute would lead to safe mode
    back = board.open()
    assert back.connect(codec.connect("away", clean=False)).session_present
    back.receive("jobs/1", b"at qos 1", 1)  # without DUP, as it was never sent
    back.receive("jobs/2", b"after a cut", 1)
    back.subscribe("state", qos=1)
    back.receive("state", b"retained", 1, retain=True)


def test_the_journal_is_no_file_but_part_of_a_backup(kept: Deployed) -> None:
    board = kept
    folder = board.folder / "saved"
    status, said = board.cli("backup", folder, "--port", board.board.device)
    assert status == 0, said
    assert not (folder / "slotmq.db").exists()
    copy = folder / backup.REGION
    assert copy.stat().st_size == 64 * 4096
    told = CliRunner().invoke(main, ["inspect", str(copy)])
    assert told.exit_code == 0 and "state" in told.output and "away" in told.output, told.output


def test_deploy_with_erase_erases_the_journal(kept: Deployed) -> None:
    board = kept
    said = board.deploy(CONF, "--erase")
    assert "journal" in said and "erased" in said
    back = board.open()
    assert not back.connect(codec.connect("away", clean=False)).session_present
    back.subscribe("state", qos=1)
    assert back.receive_all() == []


def test_eight_clients_are_served(kept: Deployed) -> None:
    clients = [kept.connect(f"client{n}") for n in range(CLIENTS)]
    for client in clients:
        client.subscribe("all", qos=1)
    clients[0].publish("all", b"to all", 1)
    for client in clients:
        client.receive("all", b"to all", 1)


def test_the_file_system_is_undamaged(board: Deployed) -> None:
    board.hang_up()
    with Repl(board.board.device) as repl:
        assert {
            "/main.py",
            "/slotmq.conf",
            "/network.json",
        } <= repl.hashes().keys()
