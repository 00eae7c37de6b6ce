"""The subscription tree: which levels exist.

SIGUSR2 prints a line for each level, indented by two more spaces than its parent, with the
clients that subscribed at that level.
"""

import signal
import time

import pytest

OWN = pytest.mark.config("# for trees")  # without other subscriptions
DUMPS = pytest.mark.ours("mosquitto writes its tree to its log, in another form")

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
