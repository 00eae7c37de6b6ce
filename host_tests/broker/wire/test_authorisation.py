"""Random access lists against an oracle: who may publish, subscribe and receive what.

The oracle is written from docs/configure.md alone and shares nothing with the broker. Each
client tries each topic and filter, by each way that a message can take: PUBLISH, a will, a
subscription, a shared one, a retained message, and a delivery.
"""

import random
from pathlib import Path
from typing import NamedTuple

import pytest

from ..wire5 import codec
from ..wire5.client import Client
from .codec import Will
from .process import BrokerProcess

NOT_AUTHORIZED = 0x87
LISTS = 8  # for each runtime
LEVELS = ("a", "b", "c1", "alice")
TOPICS = [f"{one}/{two}" for one in LEVELS for two in LEVELS] + ["a", "a/b/c1"]
FILTERS = ["#", "a/#", "+/b", "+/+", "a/b", "c1/#", "+/alice/#", "a", "a/+/c1", "alice/c1"]
# Client id, user name; a pattern matches nobody whose name has a wildcard
WHO = (("c1", ""), ("c2", ""), ("c1", "alice"), ("c2", "alice"), ("c2", "bob"), ("c+", "alice"))


class Rule(NamedTuple):
    """A line; user None: a pattern."""

    user: str | None
    access: str
    levels: list[str]


def matches(levels: list[str], topic: list[str]) -> bool:
    """Does a filter match a topic? Neither has a $."""
    if not levels or not topic:
        return levels in ([], ["#"]) and not topic
    return levels[0] == "#" or (levels[0] in ("+", topic[0]) and matches(levels[1:], topic[1:]))


def common(one: list[str], two: list[str]) -> list[str] | None:
    """The filter that matches what both match; None: nothing."""
    if one[:1] == ["#"] or two[:1] == ["#"]:
        return two if one[:1] == ["#"] else one
    if not one or not two:
        return [] if (one or two) in ([], ["#"]) else None
    if "+" not in (one[0], two[0]) and one[0] != two[0]:
        return None
    rest = common(one[1:], two[1:])
    return None if rest is None else [two[0] if one[0] == "+" else one[0], *rest]


def covers(one: list[str], two: list[str]) -> bool:
    """Does the first filter match whatever the second one does?"""
    if one[:1] == ["#"] or not two:
        return one in ([], ["#"]) or one[:1] == ["#"]
    if not one or two[0] == "#":
        return False
    return one[0] in ("+", two[0]) and covers(one[1:], two[1:])


class Oracle:
    """What a client may do, from the rules in the order of the file."""

    def __init__(self, rules: list[Rule], client_id: str, user: str) -> None:
        own = [rule for rule in rules if rule.user == user]
        patterns = [
            rule._replace(levels=[self._filled(level, client_id, user) for level in rule.levels])
            for rule in rules
            if rule.user is None and not set("+#") & set(client_id + user)
        ]
        self._rules = [
            rule
            for section in (own, patterns)
            for is_denial in (True, False)
            for rule in section
            if (rule.access == "deny") == is_denial
        ]

    def may(self, access: str, topic: str) -> bool:
        """Read or write."""
        for rule in self._rules:
            if rule.access in ("deny", access, "readwrite") and matches(
                rule.levels, topic.split("/")
            ):
                return rule.access != "deny"
        return False

    def may_subscribe(self, name: str) -> bool:
        """Is there a rule under which something could be read?"""
        for at, rule in enumerate(self._rules):
            shared = common(rule.levels, name.split("/"))
            if rule.access in ("read", "readwrite", "subscribe") and shared is not None:
                before = [each.levels for each in self._rules[:at] if each.access == "deny"]
                if not any(covers(denial, shared) for denial in before):
                    return True
        return False

    @staticmethod
    def _filled(level: str, client_id: str, user: str) -> str:
        return {"%c": client_id, "%u": user}.get(level, level)


def random_rules(dice: random.Random) -> list[Rule]:
    """A dozen rules, in sections of users."""
    accesses = ["read", "write", "readwrite", "readwrite", "deny", "subscribe"]
    found = []
    for user in ("", "alice", "bob", None):
        for _ in range(dice.randint(1, 5)):
            own = [] if user is not None else ["%c", "%u"]
            levels = dice.choices([*LEVELS, "+", *own], k=dice.randint(1, 3))
            if dice.random() < 0.4:
                levels[-1] = "#"
            found.append(Rule(user, dice.choice(accesses), levels))
    return found


def written(rules: list[Rule]) -> str:
    """The access list; its first user may do everything."""
    lines = []
    for at, rule in enumerate(rules):
        if rule.user and rule.user != rules[at - 1].user:
            lines.append(f"user {rule.user}")
        kind = "pattern" if rule.user is None else "topic"
        lines.append(f"{kind} {rule.access} {'/'.join(rule.levels)}")
    return "\n".join([*lines, "user root", "topic readwrite #", ""])


def received(client: Client) -> list[codec.Publish]:
    """All that the broker has for it, also what waits for acknowledgements."""
    found: list[codec.Publish] = []
    while more := client.receive_all():
        found += more
    return found


class Matrix:
    """A broker with one list, and a client that may do everything."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self._root = self._client("root", "root")
        self._root.subscribe("#", qos=1)

    def _client(self, client_id: str, user: str, will: Will | None = None) -> Client:
        client = Client(self._broker.address)
        client.connect(codec.connect(client_id, username=user or None, will=will))
        return client

    def close(self) -> None:
        self._root.disconnect()

    def check(self, rules: list[Rule], client_id: str, user: str) -> None:
        """All that this client tries."""
        oracle = Oracle(rules, client_id, user)
        self._check_publish(oracle, client_id, user)
        granted = [name for name in FILTERS if oracle.may_subscribe(name)]
        for share in ("", "$share/group/"):
            self._check_subscribe(oracle, client_id, user, share, granted)
        self._check_will(oracle, client_id, user)

    def _check_publish(self, oracle: Oracle, client_id: str, user: str) -> None:
        client = self._client(client_id, user)
        wanted = {topic for topic in TOPICS if oracle.may("write", topic)}
        accepted = set()
        for topic in TOPICS:
            client.send(codec.publish(topic, b"mine", 1, client.next_id()))
            if client._first(codec.Ack).code != NOT_AUTHORIZED:
                accepted.add(topic)
        assert accepted == wanted
        assert {message.topic for message in received(self._root)} == wanted
        client.disconnect()

    def _check_subscribe(
        self, oracle: Oracle, client_id: str, user: str, share: str, granted: list[str]
    ) -> None:
        for topic in TOPICS:  # retained from now on
            self._root.publish(topic, b"kept", 1, retain=True)
        client = self._client(client_id, user)
        codes = client.request(*((share + name, 1) for name in FILTERS))
        told = [name for name, code in zip(FILTERS, codes, strict=True) if code != NOT_AUTHORIZED]
        assert told == granted
        wanted = {
            topic
            for topic in TOPICS
            if oracle.may("read", topic)
            and any(matches(name.split("/"), topic.split("/")) for name in granted)
        }
        kept = {message.topic for message in received(client)}
        assert kept == (set() if share else wanted)
        for topic in TOPICS:
            self._root.publish(topic, b"", 1, retain=True)
            self._root.publish(topic, b"new", 1)
        came = {each.topic for each in received(client) if each.payload == b"new"}
        assert came == wanted
        client.disconnect()
        received(self._root)

    def _check_will(self, oracle: Oracle, client_id: str, user: str) -> None:
        for topic in TOPICS[::5]:
            self._client(client_id, user, Will(topic, b"will", 1)).drop()
            came = [message.payload for message in received(self._root)]
            assert came == [b"will"] * oracle.may("write", topic), topic


@pytest.mark.parametrize("seed", range(LISTS))
def test_each_way_is_as_the_rules_say(runtime: str, seed: int, tmp_path: Path) -> None:
    rules = random_rules(random.Random(seed))
    file = tmp_path / "rules"
    file.write_text(written(rules))
    broker = BrokerProcess(runtime, f"acl_file {file}\n", tmp_path)
    try:
        matrix = Matrix(broker)
        for client_id, user in WHO:
            matrix.check(rules, client_id, user)
        matrix.close()
    except AssertionError as error:
        raise AssertionError(f"{error}\n{file.read_text()}") from error
    finally:
        broker.stop()


def test_the_oracle_tells_lists_apart() -> None:
    """Most lists allow some of what the table tries and forbid some, by each access."""
    for access in ("read", "write"):
        told = [
            Oracle(random_rules(random.Random(seed)), *who).may(access, topic)
            for seed in range(LISTS)
            for who in WHO
            for topic in TOPICS
        ]
        assert 0.15 < sum(told) / len(told) < 0.85, access
