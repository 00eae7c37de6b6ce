"""A board with users, or with an acl_file, in the heap that deploy demands for it: all clients
are served, tables and code stay small, and what the rules deny is not delivered."""

from contextlib import closing
from pathlib import Path

import pytest

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client
from host_tests.broker.wire5 import codec as codec5
from host_tests.broker.wire5.client import Client as Client5
from slotmq.config import budget
from slotmq_dev.heap.measure import limits_of, users_and_rules
from slotmq_tools import boards, passwd
from slotmq_tools.deploy import steps

from .test_firmware import RULES, native_code
from .test_presets import Deployed

USERS = 8
TABLES = 3072  # of each of both
CODE = 8192  # with rules


@pytest.mark.parametrize("name", ["RPI_PICO_W", "ESP32_GENERIC"])
def test_every_client_logs_in(name: str, tmp_path: Path) -> None:
    users = tmp_path / "users"
    limits = limits_of(name)
    for number in range(USERS):
        passwd.put(users, f"user{number}", f"secret{number}")
    more = "mqtt_versions 3\n" if name.startswith("ESP32") else ""
    less = "" if more else "limit message_bytes 9856\n"  # as the board's README says
    conf = f"password_file {users}\nlimit users {USERS}\n{more}{less}"
    with closing(Deployed(name, tmp_path, conf)) as board:
        for number in range(limits.connections):
            is_5 = number % 2 and not more
            client: Client = (Client5 if is_5 else Client)(board.address)
            board.clients.append(client)
            said = {"username": f"user{number}", "password": f"secret{number}".encode()}
            answer = client.connect((codec5 if is_5 else codec).connect(f"c{number}", **said))
            assert answer.code == 0
        guess = Client(board.address)
        board.clients.append(guess)
        guess.send(codec.connect("g", username="user1", password=b"guess"))
        assert guess.next() == codec.Connack(False, 4)


def test_with_rules_their_code_stays_small() -> None:
    _, code = users_and_rules("RPI_PICO_W", USERS, 20)
    assert 0 < code <= CODE


def test_their_tables_stay_small() -> None:
    """Those of the users, and those of 20 rules; printed: what both take together."""
    limits = limits_of("RPI_PICO_W").replaced({"users": USERS, "acl_rules": 20})
    users = budget.users_row(limits)[1]
    rules = budget.acl_row(limits)[1] + budget.owners_row(limits)[1]
    print(f"users {users}, rules {rules}, both {users + rules}")
    assert users <= TABLES and rules <= TABLES


COLLECTOR = 131 / 128  # its tables are a part of the heap
AT_THE_PROMPT = 800  # bytes in use


@pytest.mark.parametrize("name", ["RPI_PICO_W", "ESP32_GENERIC"])
def test_every_client_is_served(name: str, tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.write_bytes(b"topic readwrite news\ntopic write secret\n" + RULES)
    conf = tmp_path / "deployed.conf"
    conf.write_text("listener 1883\nallow_anonymous true\nacl_file rules\n")
    board = boards.load(name)
    need, _ = steps.heap_needed(board, conf)
    need -= native_code(board, "") if board.mcu.startswith("rp2") else 0
    heap = int(need * COLLECTOR) + AT_THE_PROMPT
    with closing(Deployed(name, tmp_path, f"acl_file {rules}\n", heap=heap)) as running:
        running.serves(running.limits.connections)
        reader, writer = running.clients[:2]
        reader.subscribe("#")
        writer.publish("secret", b"x", 1)
        writer.publish("news", b"last", 1)
        topics = [each.topic for each in reader.receive_all()]
        assert "news" in topics and "secret" not in topics
