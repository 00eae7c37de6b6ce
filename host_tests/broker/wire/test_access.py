"""acl_file over the wire, on both runtimes: what is published, delivered, kept and refused under
rules, and new rules by SIGHUP. unit/access has the cases one by one."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slotmq import Broker, Settings

from ...support.program import Start
from . import codec
from .codec import Will
from .process import BrokerProcess
from .refusals import code_of
from .scene import each_version

RULES = """
topic read open/#
user root
topic readwrite #
user alice
topic readwrite room/#
topic deny room/safe/#
topic write last/alice
user bob
topic read room/1
"""
WITHOUT_ALICE = "user root\ntopic readwrite #\n"


class RuledBroker(BrokerProcess):
    """A broker whose rules a test changes."""

    def __init__(self, runtime: str, text: str, folder: Path) -> None:
        self.rules = folder / "acl"
        self.rules.write_text(RULES)
        super().__init__(runtime, f"acl_file {self.rules}\n{text}", folder)

    def change(self, rules: str, says: str = "Read ") -> None:
        """New rules by SIGHUP."""
        before = self.times(says)
        self.rules.write_text(rules)
        self.signal(signal.SIGHUP)
        self.wait_for(lambda: self.times(says) > before, f"the log to say {says}")

    def times(self, words: str) -> int:
        return sum(words in line for line in self.logged())

    def logged(self) -> list[str]:
        return self.complaints().splitlines() + self.lines


@pytest.fixture(scope="module")
def shared(runtime: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RuledBroker]:
    own = RuledBroker(runtime, "", tmp_path_factory.mktemp("ruled"))
    yield own
    own.stop()


@pytest.fixture
def broker(request: pytest.FixtureRequest, runtime: str, tmp_path: Path) -> Iterator[RuledBroker]:
    """With a configuration one of its own; else one that has its first rules again."""
    if marker := request.node.get_closest_marker("config"):
        own = RuledBroker(runtime, marker.args[0].format(folder=tmp_path), tmp_path)
        yield own
        own.stop()
        return
    ruled: RuledBroker = request.getfixturevalue("shared")
    yield ruled
    if ruled.rules.read_text() != RULES:
        ruled.change(RULES)


def login(mqtt: Any, user: str | None, name: str = "", **options: Any) -> Any:
    return mqtt.connect(name or user or "anyone", username=user, **options)


@each_version("3.3.5-2 4.3.2-2 4.3.3-2")
@pytest.mark.parametrize("qos", [1, 2])
def test_what_may_not_be_published_is_acknowledged_and_goes_nowhere(mqtt, qos):
    root, alice = login(mqtt, "root"), login(mqtt, "alice")
    root.subscribe("#", qos=0)
    denied = 0 if alice.codec is codec else 0x87
    for topic, code in (("room/1", 0), ("room/safe/1", denied), ("hall", denied)):
        assert code_of(alice, topic, b"x", qos) == code
    assert [message.topic for message in root.publishes()] == ["room/1"]


@each_version()
def test_a_filter_over_allowed_and_denied_topics_gets_the_allowed_ones(mqtt):
    root, alice, bob = (login(mqtt, user) for user in ("root", "alice", "bob"))
    for client in (alice, bob):
        client.subscribe("#", "+/+", qos=1)
    for topic in ("room/1", "room/safe/1", "hall/1", "room/2"):
        for qos in (0, 1):
            root.publish(topic, b"x", qos, retain=topic == "room/safe/1")
    assert {message.topic for message in alice.receive_all()} == {"room/1", "room/2"}
    assert {message.topic for message in bob.receive_all()} == {"room/1"}
    alice.subscribe("room/#", qos=1)
    alice.expect_silence()
    root.publish("room/safe/1", b"", retain=True)


@each_version("3.9.3-1 3.9.3-2")
@pytest.mark.ours("mosquitto grants each subscription")
def test_a_filter_of_which_nothing_may_be_read_is_refused(mqtt):
    alice, anyone = login(mqtt, "alice"), login(mqtt, None)
    refused = 0x80 if alice.codec is codec else 0x87
    filters = [("room/1", 1), ("room/safe/#", 1), ("hall", 0), ("$SYS/#", 0), ("+/1", 2)]
    assert alice.request(*filters) == (1, refused, refused, refused, 2)
    assert anyone.request(("room/1", 0), ("open/1", 0)) == (refused, 0)


@each_version()
@pytest.mark.ours("a reload of slotmq says what it has done")
@pytest.mark.parametrize("qos", [1, 2])
def test_rights_are_removed_while_messages_are_queued(mqtt, broker, qos):
    root = login(mqtt, "root")
    kept: dict[str, Any] = {"clean": False} | (
        {} if root.codec is codec else {"session_expiry": 600}
    )
    alice = login(mqtt, "alice", **kept)
    alice.subscribe("room/#", qos=2)
    alice.drop()
    for topic in ("room/1", "room/2"):
        root.publish(topic, b"x", qos)
    broker.change(RULES.replace("room/#\n", "room/2\n", 1))
    alice = login(mqtt, "alice", **kept)
    assert alice.connack.session_present
    assert [message.topic for message in alice.receive_all()] == ["room/2"]


@each_version()
@pytest.mark.ours("a reload of slotmq says what it has done")
def test_new_rules_count_at_once_for_who_is_connected(mqtt, broker):
    root, alice = login(mqtt, "root"), login(mqtt, "alice")
    root.subscribe("#")
    alice.subscribe("room/1")
    for client in (root, alice):  # the second time without asking the rules
        client.publish("room/1")
        client.publish("room/1")
    assert len(alice.publishes()) == len(root.publishes()) == 4
    broker.change(WITHOUT_ALICE)
    for client in (root, alice):
        client.publish("room/1")
    alice.expect_silence()
    assert len(root.publishes()) == 1
    broker.change("user alice\ntopic red room/1\n", "old rules stay")
    assert any("acl:2: " in line for line in broker.logged())
    root.publish("room/1")
    assert len(root.publishes()) == 1


@each_version()
@pytest.mark.ours("a reload of slotmq says what it has done")
def test_a_will_is_asked_for_when_it_goes_out(mqtt, broker):
    root = login(mqtt, "root")
    root.subscribe("#")
    for rules, found in ((RULES, ["last/alice"]), (WITHOUT_ALICE, [])):
        broker.change(RULES)
        alice = login(mqtt, "alice", will=Will("last/alice", b"gone", 1))
        broker.change(rules)
        alice.drop()
        assert [message.topic for message in root.publishes()] == found


@each_version()
@pytest.mark.ours("mosquitto lets any user take a client id over")
def test_another_user_with_a_connected_clients_id_is_refused(mqtt):
    alice = login(mqtt, "alice", "phone")
    other = mqtt.socket()
    other.expect_refused(mqtt.packet("phone", username="bob"), 2, 0x85)
    alice.publish("room/1", b"x", 1)
    alice.expect_silence()
    again = login(mqtt, "alice", "phone")
    alice.expect_end()
    again.publish("room/1", b"x", 1)


@pytest.mark.ours("mosquitto has no remote_admin")
@pytest.mark.config(
    "record #\nrecord_location {folder}/record\nrecord_flush_interval 1\nremote_admin true\n"
)
def test_remote_admin_takes_a_rule(mqtt, broker):
    """A client may neither ask the recorder nor name an answer's topic that it may not publish."""
    rules = WITHOUT_ALICE + "topic read $SLOTMQ/#\nuser admin\ntopic write $SLOTMQ/#\n"
    broker.change(rules + "topic readwrite reply/admin\n")
    root, admin = login(mqtt, "root"), login(mqtt, "admin")
    root.subscribe("$SLOTMQ/record/+/head", "#")
    [head] = root.receive_many(1)
    get = head.topic.replace("head", "get")

    def ask(client: Any, reply: str) -> list[str]:
        asked = {"segment": 0, "offset": 0, "length": 8, "reply": reply}
        client.publish(get, json.dumps(asked).encode(), 1)
        return [m.topic for m in root.receive_all() if m.topic.startswith("reply")]

    assert ask(admin, "reply/admin") == ["reply/admin"]
    assert ask(admin, "reply/root") == []
    assert ask(root, "reply/root") == []  # its rule has no $SLOTMQ/


@pytest.mark.ours("persistence is another one there")
@pytest.mark.config("persistence true\npersistence_location {folder}/\n")
def test_a_session_keeps_its_user_over_a_restart(mqtt, broker, runtime, tmp_path):
    alice = login(mqtt, "alice", "phone", clean=False)
    alice.subscribe("room/1", qos=1)
    alice.drop()
    login(mqtt, "root").publish("room/1", b"x", 1)
    text = f"persistence true\npersistence_location {tmp_path}/\n"
    broker.stop()
    again = RuledBroker(runtime, text, tmp_path)
    mqtt.broker = again
    try:
        bob = login(mqtt, "bob", "other")
        bob.expect_silence()
        alice = login(mqtt, "alice", "phone", clean=False)
        assert alice.connack.session_present
        alice.receive("room/1", b"x", 1)
    finally:
        again.stop()
    broker.__init__(runtime, text, tmp_path)  # the fixture stops it


def test_a_bad_file_ends_the_start_with_all_its_errors(start: Start, tmp_path: Path) -> None:
    rules = tmp_path / "acl"
    rules.write_text("topic red a\nuser alice\ntopic a/#/b\ntopic read cut")
    conf = tmp_path / "conf"
    conf.write_text(f"acl_file {rules}\n")
    run = start("-c", conf)
    run.wait_for(run.ended, "its end")
    assert run.process.returncode == 3
    for line in (1, 3, 4):
        assert f"{rules}:{line}: expected " in run.errors.read_text()


def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs/configure.md"
    example = page.read_text().partition("## Access lists")[2].split("```\n")[1]
    assert len(example.splitlines()) == 10
    rules = tmp_path / "acl"
    rules.write_text(example)
    acl = Broker(settings=Settings(acl_file=str(rules))).acl
    assert acl and acl.count == 6


@pytest.mark.ours("mosquitto reads it at once")
def test_a_first_acl_file_by_sighup_warns_that_all_rights_stay(
    runtime: str, tmp_path: Path
) -> None:
    broker = BrokerProcess(runtime, "log_type all\n", tmp_path)
    try:
        rules = tmp_path / "acl"
        rules.write_text(RULES)
        broker.write(f"log_type all\nacl_file {rules}\n")
        broker.signal(signal.SIGHUP)
        words = "acl_file: until that restart each client may read and write all topics."
        broker.wait_for(lambda: words in broker.complaints(), "the warning")
        assert "Only a restart changes: acl_file." in broker.complaints()
    finally:
        broker.stop()
