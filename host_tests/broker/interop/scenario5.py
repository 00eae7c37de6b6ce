"""The scenario of MQTT 5.0 for every client, and the steps that a client cannot do.

A step is a list of moves (moves5.py), with clients and topics of its own. All clients of a
step are of the same kind.
"""

from dataclasses import replace

from .moves5 import Connect, Die, Ended, Leave, Message, Publish, Receive, Share, Step, Subscribe

READER, WRITER = Connect("reader"), Connect("writer")
LARGE = "0123456789abcdef" * 1280  # 20 KB
ALL = {
    "format": 1,
    "content_type": "text/plain",
    "response_topic": "answers/here",
    "correlation": "17",
    "expiry": 1000,
    "user": (("b", "2"), ("a", "1")),
}


def full(topic: str, payload: str = "hi", qos: int = 1, retain: bool = False) -> Message:
    """A message with all properties that a publisher can give."""
    return Message(topic, payload, qos, retain, **ALL)  # type: ignore[arg-type]


def gone(topic: str) -> Publish:
    """Clear the retained message."""
    return Publish("writer", Message(topic, "", retain=True))


def passes(*messages: Message) -> Step:
    """The writer publishes each, and the reader receives it as it was."""
    pairs = ((Publish("writer", message), Receive("reader", message)) for message in messages)
    return tuple(move for pair in pairs for move in pair)


def of_qos(qos: int) -> Step:
    """With all properties, with none, and large with all again."""
    messages = full("x", qos=qos), Message("x", "plain", qos), full("x", LARGE, qos)
    return (READER, WRITER, Subscribe("reader", ("+",), qos), *passes(*messages))


def comes_aliased(topic: str) -> Step:
    """The broker gives the topic an alias, or has given it one."""
    return Publish("writer", full(topic)), Receive("reader", replace(full(topic), aliased=True))


SHARED = tuple(Message("jobs", str(number)) for number in range(6))
END = Message("end", "end")
MEMBERS = ("first", "second")

STEPS: dict[str, Step] = {
    "QoS 0": of_qos(0),
    "QoS 1": of_qos(1),
    "QoS 2": of_qos(2),
    "the lower QoS": (
        READER,
        WRITER,
        Subscribe("reader", ("x",), qos=1),
        Publish("writer", full("x", qos=2)),
        Receive("reader", full("x", qos=1)),
    ),
    "user properties of one name": (
        READER,
        WRITER,
        Subscribe("reader", ("x",)),
        *passes(Message("x", user=(("b", "2"), ("a", "1"), ("b", "3")))),
    ),
    "no local": (
        Connect("both"),
        WRITER,
        Subscribe("both", ("+",), no_local=True),
        Publish("both", Message("x", "mine")),
        Publish("writer", Message("x", "yours")),
        Receive("both", Message("x", "yours")),
    ),
    "retain as published": (
        READER,
        Connect("plain"),
        WRITER,
        Subscribe("reader", ("+",), as_published=True),
        Subscribe("plain", ("+",)),
        Publish("writer", full("x", retain=True)),
        Receive("reader", full("x", retain=True)),
        Receive("plain", full("x", retain=False)),
        gone("x"),
    ),
    "retain handling": (
        READER,
        WRITER,
        Publish("writer", Message("x", "old", retain=True)),
        Subscribe("reader", ("x",), handling=2),
        gone("x"),
        Receive("reader", Message("x", "")),
    ),
    "a subscription identifier": (
        READER,
        WRITER,
        Subscribe("reader", ("+",), identifier=268435455),
        Publish("writer", full("x")),
        Receive("reader", replace(full("x"), identifiers=(268435455,))),
    ),
    "a shared subscription": (
        *map(Connect, MEMBERS),
        WRITER,
        *(Subscribe(who, ("$share/group/jobs", "end")) for who in MEMBERS),
        *(Publish("writer", message) for message in (*SHARED, END)),
        Share(MEMBERS, SHARED, END),
    ),
    "an alias for the topic": (
        READER,
        WRITER,
        Subscribe("reader", ("+",)),
        Publish("writer", full("x"), alias=1, times=3),
        *(Receive("reader", full("x")) for _ in range(3)),
    ),
    "the broker's alias for the topic": (
        Connect("reader", aliases=5),
        WRITER,
        Subscribe("reader", ("+",)),
        *comes_aliased("x"),
        *comes_aliased("y"),
        *comes_aliased("x"),
        *comes_aliased("y"),
    ),
    "a retained message": (
        WRITER,
        Publish("writer", full("x", retain=True)),
        READER,
        Subscribe("reader", ("#",)),
        Receive("reader", full("x", retain=True)),
        gone("x"),
        Receive("reader", Message("x", "")),
        Connect("late"),
        Subscribe("late", ("#",)),
        Publish("writer", Message("x", "live")),
        Receive("late", Message("x", "live")),
    ),
    "a will": (
        READER,
        Subscribe("reader", ("will/+",), qos=2),
        WRITER,
        Connect("mortal", will=full("will/x", "gone", qos=2, retain=True)),
        Die("mortal"),
        Receive("reader", full("will/x", "gone", qos=2)),
        Connect("late"),
        Subscribe("late", ("will/x",)),
        Receive("late", full("will/x", "gone", qos=1, retain=True)),
        gone("will/x"),
    ),
    "no will of one that leaves": (
        READER,
        WRITER,
        Subscribe("reader", ("+",)),
        Connect("orderly", will=full("will")),
        Leave("orderly"),
        *passes(full("x")),
    ),
    "what waited": (
        Connect("away", expiry=60),
        Subscribe("away", ("+",), qos=2),
        Leave("away"),
        WRITER,
        Publish("writer", full("1", "first", qos=1)),
        Publish("writer", full("2", "second", qos=2)),
        Connect("mortal", will=full("3", "gone", qos=2)),
        Die("mortal"),
        Connect("away", clean=False),
        Receive("away", full("1", "first", qos=1)),
        Receive("away", full("2", "second", qos=2)),
        Receive("away", full("3", "gone", qos=2)),
    ),
    "session present": (
        Connect("away", clean=False, expiry=60, present=False),
        Leave("away"),
        Connect("away", clean=False, expiry=60, present=True),
        Leave("away"),
        Connect("away", clean=True, expiry=60, present=False),
        Leave("away"),
        Connect("away", clean=False, expiry=0, present=True),
        Leave("away"),
        Connect("away", clean=False, present=False),
    ),
    "nobody subscribes": (
        READER,
        WRITER,
        Subscribe("reader", ("x",)),
        Publish("writer", Message("x"), reason=0),
        Receive("reader", Message("x")),
        Publish("writer", Message("y"), reason=0x10),
    ),
    "taken over": (
        Connect("first", name="same", expiry=60),
        Subscribe("first", ("x",)),
        Connect("second", name="same", clean=False),
        Subscribe("second", ("y",)),
        Ended("first", 0x8E),
        WRITER,
        Publish("writer", full("x")),
        Receive("second", full("x")),
    ),
}

# What a kind of client has no way to do, by step: there its adapter raises Cannot, and says this.
IMPOSSIBLE: dict[str, dict[str, str]] = {
    "paho": {
        "the broker's alias for the topic": "paho hands a message on without the topic",
    },
    "gmqtt": {
        "nobody subscribes": "gmqtt does not read the reason code of a PUBACK",
    },
    "MQTT.js": {
        "user properties of one name": "MQTT.js gathers the values by name, out of order",
    },
    "mosquitto": {
        "no local": "mosquitto_sub has no option for it",
        "retain handling": "mosquitto_sub has no option for it",
        "the broker's alias for the topic": "libmosquitto takes a message without a topic amiss",
        "session present": "mosquitto_sub does not tell",
        "no will of one that leaves": "a signal makes mosquitto_sub leave its will to the broker",
    },
}
