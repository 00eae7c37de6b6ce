"""The subscription tree: which clients a message reaches, and which levels exist.

SIGUSR2 prints a line for each level, indented by two more spaces than its parent, with the
clients that subscribed at that level.
"""

import signal
import time

import pytest

from .scene import spec

OWN = pytest.mark.config("# for trees")  # without other subscriptions
DUMPS = pytest.mark.ours("mosquitto writes its tree to its log, in another form")

MOSQUITTO_WALK = """\
A1 a/b/c      B1 a/b/+        C1 a/b/#
A2 a/b/c/d    B2 a/b/+/d      C2 a/b/c/#
A3 a/b/c/x    B3 a/b/c/+      C3 a/b/c/d/#
A4 a/b/c/d/e  B4 a/b/c/+/e    C4 a/b/c/d/e/#
              B5 a/b/c/d/+
              B6 a/b/c/d/+/f"""
MOQUETTE_WALK = "A /test/#  B /test/hello/#  C /test/hello/beijing  D /test/+/hello"
TREE = """\
a1 A1/B1/C1  a2 A1/B1/C1  a3 A1/B1/C1
b1 A2/B2/C2  b2 A2/B2/C2
c1 A1/B1/C3  c2 A1/B1/C3
d1 A2/B3"""


def subscribe_all(mqtt, table):
    """A client for each pair of a name and a filter, by name."""
    words = table.split()
    clients = {name: mqtt.connect(name) for name in words[::2]}
    for name, topic_filter in zip(words[::2], words[1::2], strict=True):
        clients[name].subscribe(topic_filter)
    return clients


def reached(clients, topic):
    """The names of the clients that got one message of that topic."""
    found = {name: client.publishes() for name, client in clients.items()}
    assert all([m.topic for m in got] in ([], [topic]) for got in found.values())
    return {name for name, got in found.items() if got}


def tree_of(lines):
    """{path: subscribers}, without the levels of $SYS."""
    found: dict[str, set[str]] = {}
    path: list[str] = []
    for line in lines:
        level, _, who = line.strip().partition(" (")
        path[(len(line) - len(line.lstrip())) // 2 :] = [level]
        found["/".join(path)] = set(who.rstrip(")").split(", ")) - {""}
    return {path: who for path, who in found.items() if not path.startswith("$SYS/")}


def assert_tree(broker, client, expected):
    """The dump of the tree shows these levels, and no others."""
    start, deadline, shown = len(broker.lines), time.monotonic() + 10, None
    broker.signal(signal.SIGUSR2)
    while shown != expected and time.monotonic() < deadline:
        client.ping()
        time.sleep(0.05)  # a line too many would have been read by then
        shown = tree_of(broker.lines[start:])
    assert shown == expected


@OWN
@spec("3.3.2-3")
def test_wildcards_at_every_level(mqtt):
    clients = subscribe_all(mqtt, MOSQUITTO_WALK)
    publisher = mqtt.connect()
    publisher.publish("none/exists/topic")
    assert reached(clients, "none/exists/topic") == set()
    publisher.publish("a/b/c/d")
    assert reached(clients, "a/b/c/d") == {"A2", "B2", "B3", "C1", "C2", "C3"}


@OWN
@spec("3.3.2-3")
def test_wildcards_with_a_leading_slash(mqtt):
    clients = subscribe_all(mqtt, MOQUETTE_WALK)
    mqtt.connect().publish("/test/hello/shanghai")
    assert reached(clients, "/test/hello/shanghai") == {"A", "B"}


@OWN
@DUMPS
def test_unsubscribing_removes_empty_levels(mqtt, broker):
    deep, shallow = mqtt.connect("deep"), mqtt.connect("shallow")
    at_b = {f"{mqtt.client_id('shallow')}:0"}
    at_d = {f"{mqtt.client_id('deep')}:1"}
    deep.subscribe("a/b/c/d", qos=1)
    shallow.subscribe("a/b")
    assert_tree(
        broker,
        deep,
        {"$SYS": set(), "a": set(), "a/b": at_b, "a/b/c": set(), "a/b/c/d": at_d},
    )
    deep.unsubscribe("a/b/c/d")
    assert_tree(broker, deep, {"$SYS": set(), "a": set(), "a/b": at_b})
    shallow.unsubscribe("a/b")
    assert_tree(broker, deep, {"$SYS": set()})
    deep.subscribe("a/b/c/d", qos=1)
    deep.unsubscribe("a/b/c/d")
    assert_tree(broker, deep, {"$SYS": set()})


@OWN
@DUMPS
def test_clients_share_the_levels_of_their_filters(mqtt, broker):
    clients = subscribe_all(mqtt, TREE)

    def who(*names):
        return {f"{mqtt.client_id(name)}:0" for name in names}

    assert_tree(
        broker,
        clients["a1"],
        {
            "$SYS": set(),
            "A1": set(),
            "A1/B1": set(),
            "A1/B1/C1": who("a1", "a2", "a3"),
            "A1/B1/C3": who("c1", "c2"),
            "A2": set(),
            "A2/B2": set(),
            "A2/B2/C2": who("b1", "b2"),
            "A2/B3": who("d1"),
        },
    )


@OWN
@DUMPS
@pytest.mark.parametrize("end", ["drop", "disconnect"])
def test_the_end_of_a_clean_session_removes_its_levels(mqtt, broker, end):
    leaving, staying = mqtt.connect("leaving"), mqtt.connect("staying", clean=False)
    leaving.subscribe("a/b", "a/+", "#")
    staying.subscribe("a/c")
    getattr(leaving, end)()
    left = {"$SYS": set(), "a": set(), "a/c": {f"{mqtt.client_id('staying')}:0"}}
    assert_tree(broker, staying, left)
    staying.disconnect()
    assert_tree(broker, mqtt.connect(), left)
