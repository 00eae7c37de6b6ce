"""What the board promised outlives a power cut: the journal on its littlefs."""

import pytest

from host_tests.broker.wire import codec

from .conftest import Deployed

CONF = "listener 1883\nallow_anonymous true\npersistence true\n"


@pytest.fixture(scope="module", autouse=True)
def keeping(board: Deployed) -> None:
    board.deploy(CONF)


def test_sessions_messages_and_retained_ones_are_there_again(board: Deployed) -> None:
    away = board.connect("away", clean=False)
    away.subscribe("jobs/+", qos=2)
    away.disconnect()
    sender = board.connect("sender")
    sender.publish("jobs/1", b"at qos 1", 1)
    sender.publish("jobs/2", b"at qos 2", 2)
    sender.publish("state", b"retained", 1, retain=True)
    board.power_cycle()
    back = board.open()
    assert back.connect(codec.connect("away", clean=False)).session_present
    back.receive("jobs/1", b"at qos 1", 1)  # it was never sent, so it has no DUP
    back.receive("jobs/2", b"at qos 2", 2)
    back.subscribe("state", qos=1)
    back.receive("state", b"retained", 1, retain=True)


def test_what_was_acknowledged_does_not_come_again(board: Deployed) -> None:
    board.power_cycle()
    back = board.connect("away", clean=False)
    assert back.receive_all() == []


def test_the_journal_is_in_a_backup_and_comes_back(board: Deployed) -> None:
    folder = board.folder / "journal"
    status, said = board.cli("backup", folder, "--port", board.board.device)
    assert status == 0, said
    assert (folder / "slotmq.db").exists(), said
    board.deploy(CONF, "--erase")
    fresh = board.connect("fresh")
    fresh.subscribe("state", qos=1)
    assert fresh.receive_all() == []
    board.hang_up()
    status, said = board.cli("backup", folder, "--restore", "--port", board.board.device)
    assert status == 0, said
    board.wait_until(board.serves, "the broker")
    fresh = board.connect("fresh")
    fresh.subscribe("state", qos=1)
    fresh.receive("state", b"retained", 1, retain=True)
