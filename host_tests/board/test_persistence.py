"""Sessions and messages survive a power cut: the journal on littlefs."""

import pytest

from host_tests.broker.wire import codec

from .conftest import Deployed

CONF = "listener 1883\nallow_anonymous true\npersistence true\n"


@pytest.fixture(scope="module", autouse=True)
def persistent(board: Deployed) -> None:
    board.deploy(CONF)


def test_sessions_and_messages_survive_a_power_cut(board: Deployed) -> None:
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
    back.receive("jobs/1", b"at qos 1", 1)  # without DUP, as it was never sent
    back.receive("jobs/2", b"at qos 2", 2)
    back.subscribe("state", qos=1)
    back.receive("state", b"retained", 1, retain=True)
    back.ping()  # the board has handled the last PUBACK


def test_acknowledged_messages_are_not_sent_again(board: Deployed) -> None:
    board.power_cycle()
    back = board.connect("away", clean=False)
    assert back.receive_all() == []


def test_a_backup_has_the_journal_and_restores_it(board: Deployed) -> None:
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
