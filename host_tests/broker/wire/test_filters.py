"""Topic names and topic filters: which are valid, and which match."""

import pytest

from .refusals import refuse_filter
from .scene import each_version, spec
from .vectors import GOOD_TEXT

# A broker on which no other test publishes or retains anything.
pytestmark = pytest.mark.config("# for filters that match everything")

INVALID = {
    "MQTT-4.7.3-1": [""],
    "MQTT-4.7.1-2": ["a#", "#a", "#/a", "a/#/b", "##", "#/", "a/b#", "a/#b", "/#/", "#/#"],
    "MQTT-4.7.1-3": ["a+", "+a", "a/+b", "a/b+", "++", "a/++", "+a/b", "a+/b", "a/b+/c", "/+a"],
    "MQTT-4.7.1-1": ["+#", "#+", "a/+#", "a/#+"],
}
INVALID_ROWS = [
    pytest.param(name, marks=pytest.mark.spec(statement))
    for statement, names in INVALID.items()
    for name in names
]

# filter | topics it matches | topics it does not match
MATCHES = """\
sport/tennis/player1   | sport/tennis/player1 | sport/tennis sport/tennis/player2
sport/tennis/player1/# | sport/tennis/player1 sport/tennis/player1/r/s | sport/tennis/player10
sport/#                | sport sport/ sport/a sport/a/b | sports Sport/a /sport
#                      | a a/b / /a a// | $ $x $x/y $SYS/x
sport/tennis/+         | sport/tennis/player1 sport/tennis/ | sport/tennis sport/tennis/player1/r
sport/+                | sport/ sport/a | sport sport/a/b
sport/+/player1        | sport/tennis/player1 sport//player1 | sport/tennis/player2 sport/player1
+                      | a finance | /finance a/ a/b $x
+/+                    | /finance a/b a/ / | finance a/b/c $x/y
/+                     | /finance / | finance a/finance
+/                     | / a/ | a a/b
+/tennis/#             | a/tennis a/tennis/b /tennis | tennis a/b/tennis $x/tennis
+/+/+                  | a/b/c // a// //c | a/b a/b/c/d
a//b                   | a//b | a/b a/x/b
/                      | / | a a/ /a //
a/                     | a/ | a a//
/a                     | /a | a //a
$x/#                   | $x $x/y $x/y/z | x/y $X/y $xx
$x/+                   | $x/y $x/ | $x $x/y/z
a/$x/+                 | a/$x/y | a/$x
a/+/$x                 | a/b/$x a//$x | a/b/x
+/$x                   | a/$x | $x
ACCOUNTS               | ACCOUNTS | Accounts accounts"""
# U+00E9 and its decomposed form look alike, and are two topics.
COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


@each_version("3.3.2-3 4.7.1-2 4.7.1-3 4.7.2-1 4.7.3-4", "3.3.2-3 4.5.0-1 4.7.2-1 4.7.3-4")
@pytest.mark.parametrize("row", MATCHES.splitlines())
def test_a_filter_matches_these_topics(mqtt, row):
    [name], matching, others = [part.split() for part in row.split("|")]
    subscriber, publisher = mqtt.connect(), mqtt.connect()
    subscriber.subscribe(name)
    for topic in [*others, *matching]:
        publisher.publish(topic)
    assert [m.topic for m in subscriber.publishes()] == matching


@each_version(new="4.7.1-1 4.7.1-2 4.7.3-1")
@pytest.mark.parametrize("name", INVALID_ROWS)
def test_an_invalid_filter_is_refused(mqtt, name):
    """The peer may send a code of its own in SUBACK."""
    for packet in (
        mqtt.codec.subscribe(1, ("good", 0), (name, 0)),
        mqtt.codec.subscribe(1, ("good", 1), (name, 3)),  # malformed counts first
        mqtt.codec.unsubscribe(1, "good", name),
    ):
        refuse_filter(mqtt, mqtt.connect(), packet)


@each_version("1.5.3-3 3.3.2-1 3.3.2-3 4.7.3-4", "1.5.4-1 1.5.4-3 4.7.3-4")
@pytest.mark.parametrize("text", [*GOOD_TEXT.values(), "", "/", "/a//b/", "a$b"])
def test_topics_are_any_utf8_text_and_arrive_unchanged(mqtt, topic, text):
    subscriber = mqtt.reader(f"{topic}/{text}")
    mqtt.connect().publish(f"{topic}/{text}")
    subscriber.receive(f"{topic}/{text}")


@each_version()
@pytest.mark.ours("mosquitto has no setting for it")
@pytest.mark.config("allow_control_characters true")
@pytest.mark.parametrize("text", ["a\x01b", "\n", "\x7f\x9f", "\ufffe", "\U0010ffff"])
def test_control_characters_may_be_allowed(mqtt, topic, text):
    subscriber = mqtt.reader(f"{topic}/{text}", name=f"{topic}{text}")
    mqtt.connect().publish(f"{topic}/{text}")
    subscriber.receive(f"{topic}/{text}")


@spec("4.7.3-4 1.5.3-3")
@pytest.mark.parametrize(
    ("subscribed", "published"),
    [(COMPOSED, DECOMPOSED), ("a", "\ufeffa"), ("\ufeffa", "a"), ("a b", "a  b"), ("A", "a")],
)
def test_topics_that_look_alike_are_different(mqtt, topic, subscribed, published):
    subscriber = mqtt.reader(f"{topic}/{subscribed}")
    mqtt.connect().publish(f"{topic}/{published}")
    subscriber.expect_silence()


@pytest.mark.parametrize("depth", [1, 2, 30, 100])
def test_deep_filters_match_deep_topics(mqtt, topic, depth):
    subscriber, publisher = mqtt.reader(topic + "/+" * depth), mqtt.connect()
    publisher.publish(topic + "/x" * (depth - 1))
    publisher.publish(topic + "/x" * (depth + 1))
    subscriber.expect_silence()
    publisher.publish(topic + "/x" * depth)
    subscriber.receive(topic + "/x" * depth)
