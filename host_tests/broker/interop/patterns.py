"""How applications use a broker: what each sends, in which order, how it reads, what it waits for.

A row is an application; its moves are those that its own code makes with default settings, with
shorter texts. `test_patterns.py` plays them over each transport. `make apps` runs the applications
themselves.
"""

import json
from dataclasses import dataclass
from typing import NamedTuple

from ..wire.codec import Will


class Pub(NamedTuple):
    """The application publishes, and waits for what its QoS asks for."""

    topic: str
    payload: bytes = b"1"
    qos: int = 0
    retain: bool = False


class Sub(NamedTuple):
    """It subscribes, by one SUBSCRIBE."""

    filters: tuple[tuple[str, int], ...]


class Given(NamedTuple):
    """Another client publishes, before the application subscribes or while it listens."""

    topic: str
    payload: bytes = b"1"
    qos: int = 0
    retain: bool = False


class Gets(NamedTuple):
    """The application gets exactly these messages, in this order: (topic, payload, retain)."""

    messages: tuple[tuple[str, bytes, bool], ...]


class Seen(NamedTuple):
    """Another client, which subscribes to all, gets this one next of that topic."""

    topic: str
    payload: bytes


class Ping(NamedTuple):
    """PINGREQ, and it waits for the answer; or not."""

    waits: bool = True


class Again(NamedTuple):
    """Its connection breaks, and it connects again."""

    present: bool = False


class Leave(NamedTuple):
    """DISCONNECT"""


class Die(NamedTuple):
    """Its connection breaks."""


Move = Pub | Sub | Given | Gets | Seen | Ping | Again | Leave | Die


@dataclass(frozen=True)
class Pattern:
    """An application. by_event: it takes one packet each time that its socket is readable, and
    does not ask what TLS or WebSocket still hold."""

    moves: tuple[Move, ...]
    client_id: str
    level: int = 4
    keep_alive: int = 60
    will: Will | None = None
    clean: bool = True
    by_event: bool = False


def _discovery(n: int) -> tuple[str, bytes]:
    name = f"sensor_{n:03}"
    topic = f"homeassistant/sensor/0x00158d0001dc{n:04x}/temperature/config"
    return topic, json.dumps(
        {
            "name": name,
            "unique_id": name,
            "state_topic": f"home/{name}",
            "availability": [{"topic": "home/bridge/state"}],
            "device": {"identifiers": [name], "manufacturer": "m" * 200, "model": "t" * 100},
        }
    ).encode()


_ENTITIES = tuple(map(_discovery, range(30)))
_STATES = tuple((f"home/sensor_{n:03}", b'{"temperature":%d}' % n) for n in range(30))


def _kept(pairs: tuple[tuple[str, bytes], ...]) -> tuple[Given, ...]:
    return tuple(Given(topic, payload, retain=True) for topic, payload in pairs)


def _retained(pairs: tuple[tuple[str, bytes], ...]) -> Gets:
    return Gets(tuple((topic, payload, True) for topic, payload in pairs))


def _home_assistant(level: int) -> Pattern:
    """paho in an event loop: discovery, then all state topics by a few SUBSCRIBEs."""
    return Pattern(
        (
            *_kept(_ENTITIES),
            *_kept(_STATES),
            Sub((("homeassistant/+/+/config", 0), ("homeassistant/+/+/+/config", 0))),
            _retained(_ENTITIES),
            Pub("homeassistant/status", b"online"),
            Seen("homeassistant/status", b"online"),
            Sub(tuple((topic, 0) for topic, _ in _STATES)),
            _retained(_STATES),
            *(Given(topic, b"new") for topic, _ in _STATES),
            Gets(tuple((topic, b"new", False) for topic, _ in _STATES)),
            Pub("home/switch/set", b"ON"),
            Seen("home/switch/set", b"ON"),
            Ping(),
            Die(),
            Seen("homeassistant/status", b"offline"),
        ),
        f"ha{level}",
        level,
        will=Will("homeassistant/status", b"offline"),
        by_event=True,
    )


_AWAY, _HERE = b'{"state":"offline"}', b'{"state":"online"}'


def _zigbee2mqtt(count: int) -> Pattern:
    """MQTT.js: all that it has is published at once, its own retained messages come back."""
    listed = [{"ieee_address": f"0x{n:016x}", "x": "d" * 4800} for n in range(count)]
    devices = json.dumps(listed).encode()
    found = tuple(
        (topic.replace("0x00158d", "0x00124b"), text)
        for topic, text in map(_discovery, range(count))
    )
    return Pattern(
        (
            *_kept(found[:20]),
            Pub("zigbee2mqtt/bridge/state", _HERE, 1, True),
            Seen("zigbee2mqtt/bridge/state", _HERE),
            Pub("zigbee2mqtt/bridge/info", b"i" * 20000, 0, True),
            Pub("zigbee2mqtt/bridge/devices", devices, 0, True),
            Pub("zigbee2mqtt/bridge/groups", b"[]", 0, True),
            Sub((("zigbee2mqtt/+/set", 0),)),
            Sub((("homeassistant/status", 0),)),
            *(Pub(topic, text, 1, True) for topic, text in found),
            Sub((("homeassistant/sensor/+/temperature/config", 0),)),
            _retained(found),
            Seen("zigbee2mqtt/bridge/devices", devices),
            Sub((("zigbee2mqtt/bridge/devices", 0),)),
            _retained((("zigbee2mqtt/bridge/devices", devices),)),
            Given("homeassistant/status", b"online"),
            Gets((("homeassistant/status", b"online", False),)),
            Given("zigbee2mqtt/lamp/set", b'{"state":"ON"}'),
            Gets((("zigbee2mqtt/lamp/set", b'{"state":"ON"}', False),)),
            Pub("zigbee2mqtt/lamp", b'{"state":"ON"}'),
            Pub("zigbee2mqtt/bridge/state", _AWAY, 1, True),
            Leave(),
            Seen("zigbee2mqtt/bridge/state", _AWAY),
        ),
        "mqttjs_5f3759df",
        will=Will("zigbee2mqtt/bridge/state", _AWAY, 1, True),
    )


PATTERNS = {
    "Home Assistant": _home_assistant(4),
    "Home Assistant, MQTT 5.0": _home_assistant(5),
    # asyncio-mqtt and aiomqtt up to 2.3
    "aiomqtt": Pattern(
        (
            Sub((("a/#", 1),)),
            *(Given(f"a/{n}", b"%d" % n, 1) for n in range(40)),
            Gets(tuple((f"a/{n}", b"%d" % n, False) for n in range(40))),
            Pub("a/done", qos=2),
            Gets((("a/done", b"1", False),)),
            Leave(),
        ),
        "aiomqtt",
        5,
        by_event=True,
    ),
    "Zigbee2MQTT": _zigbee2mqtt(30),
    "Zigbee2MQTT, 300 devices": _zigbee2mqtt(300),  # bridge/devices has 1.4 MB
    # MQTT.js: birth, close and will messages; the will does not come after the close message
    "Node-RED": Pattern(
        (
            Pub("red/state", b"birth", 1, True),
            Seen("red/state", b"birth"),
            Sub((("red/in/#", 2),)),
            Given("red/in/1", b"one", 2),
            Given("red/in/2", b"two", 1),
            Gets((("red/in/1", b"one", False), ("red/in/2", b"two", False))),
            Pub("red/out", b"three", 2),
            Seen("red/out", b"three"),
            Again(),
            Seen("red/state", b"will"),
            Pub("red/state", b"birth", 1, True),
            Seen("red/state", b"birth"),
            Pub("red/state", b"close", 1, True),
            Leave(),
            Seen("red/state", b"close"),
            Given("red/state", b"none"),
            Seen("red/state", b"none"),
        ),
        "nodered_a1b2c3d4",
        will=Will("red/state", b"will", 1, True),
    ),
    # PubSubClient reads byte by byte; commands of an empty payload, each filter by itself
    "Tasmota": Pattern(
        (
            Pub("tele/plug/LWT", b"Online", 0, True),
            Pub("cmnd/plug/POWER", b""),
            Sub((("cmnd/plug/#", 0),)),
            Sub((("cmnd/tasmotas/#", 0),)),
            Sub((("cmnd/DVES_6D7F2A_fb/#", 0),)),
            Pub("tele/plug/INFO1", b'{"Info1":{"Module":"Sonoff"}}'),
            Pub("stat/plug/RESULT", b'{"POWER":"OFF"}'),
            Pub("stat/plug/POWER", b"OFF"),
            Pub("tele/plug/SENSOR", b'{"Time":"2026-11-28T10:00:00","BME280":{"Humidity":50}}'),
            Given("cmnd/plug/POWER", b"TOGGLE"),
            Gets((("cmnd/plug/POWER", b"TOGGLE", False),)),
            Pub("stat/plug/POWER", b"ON"),
            Ping(),
            Die(),
            Seen("tele/plug/LWT", b"Online"),
            Seen("tele/plug/LWT", b"Offline"),
        ),
        "DVES_6D7F2A",
        keep_alive=30,
        will=Will("tele/plug/LWT", b"Offline", 1, True),
    ),
    # A session that stays: requests that came meanwhile are answered
    "Shelly": Pattern(
        (
            Sub((("shelly/rpc", 1), ("shelly/command", 1))),
            Pub("shelly/online", b"true", 0, True),
            Pub("shelly/status/switch:0", b'{"id":0,"output":false}', 1),
            Again(True),
            Seen("shelly/online", b"true"),
            Seen("shelly/online", b"false"),
            Given("shelly/rpc", b'{"id":1,"src":"me","method":"Switch.Toggle"}', 1),
            Gets((("shelly/rpc", b'{"id":1,"src":"me","method":"Switch.Toggle"}', False),)),
            Pub("shelly/events/rpc", b'{"src":"shelly","method":"NotifyStatus"}', 1),
            Pub("me/rpc", b'{"id":1,"result":{}}'),
            Seen("me/rpc", b'{"id":1,"result":{}}'),
            Die(),
            Seen("shelly/online", b"false"),
        ),
        "shellyplus1-a8032ab1",
        clean=False,
        will=Will("shelly/online", b"false", 0, True),
    ),
    # esp-mqtt: keep-alive 15, discovery and log beside each other
    "ESPHome": Pattern(
        (
            Pub("node/status", b"online", 0, True),
            Sub((("node/switch/relay/command", 0),)),
            *(Pub(topic, text, 0, True) for topic, text in _ENTITIES[:5]),
            *(Pub("node/debug", b"[D][sensor:094]: line %d" % n) for n in range(10)),
            Given("node/switch/relay/command", b"ON"),
            Gets((("node/switch/relay/command", b"ON", False),)),
            Pub("node/switch/relay/state", b"ON", 0, True),
            Seen("node/switch/relay/state", b"ON"),
            Ping(),
            Die(),
            Seen("node/status", b"online"),
            Seen("node/status", b"offline"),
        ),
        "node-a8032ab1",
        keep_alive=15,
        will=Will("node/status", b"offline", 0, True),
    ),
    # No keep-alive, no wait for PINGRESP
    "umqtt.simple": Pattern(
        (
            Sub((("u/in", 1),)),
            Given("u/in", b"one", 1),
            Gets((("u/in", b"one", False),)),
            Ping(False),
            Pub("u/out", b"two", 1),
            Seen("u/out", b"two"),
            Leave(),
        ),
        "umqtt",
        keep_alive=0,
    ),
    # It begins with a clean session, and then goes on with one that stays
    "mqtt_as": Pattern(
        (
            Sub((("as/in", 1),)),
            *(Ping(False) for _ in range(4)),
            Given("as/in", b"one", 1),
            Gets((("as/in", b"one", False),)),
            Ping(),  # its PUBACK has been handled
            Again(True),
            Seen("as/state", b"gone"),
            Given("as/in", b"two", 1),
            Gets((("as/in", b"two", False),)),
            Pub("as/out", b"three", 1),
            Seen("as/out", b"three"),
            Ping(),
            Leave(),
        ),
        "mqtt_as",
        clean=False,
        will=Will("as/state", b"gone"),
    ),
    # libmosquitto: many values, no subscription
    "collectd": Pattern(
        (
            *(Pub(f"collectd/host/cpu-{n}/cpu-idle", b"1795863240.1:9%d\0" % n) for n in range(9)),
            *(
                Seen(f"collectd/host/cpu-{n}/cpu-idle", b"1795863240.1:9%d\0" % n)
                for n in range(9)
            ),
            Ping(),
            Leave(),
        ),
        "collectd",
    ),
    # Paho C: QoS 2 both ways
    "Paho C": Pattern(
        (
            Sub((("c/in/+", 2), ("c/late", 1))),
            *(Given(f"c/in/{n}", b"%d" % n, 2) for n in range(12)),
            Gets(tuple((f"c/in/{n}", b"%d" % n, False) for n in range(12))),
            *(Pub(f"c/out/{n}", b"%d" % n, 2) for n in range(12)),
            *(Seen(f"c/out/{n}", b"%d" % n) for n in range(12)),
            Leave(),
        ),
        "paho23847",
        5,
    ),
    # An edge node of Sparkplug B: its death is its will, its host asks for a rebirth
    "Sparkplug B": Pattern(
        (
            Given("spBv1.0/STATE/host", b'{"online":true}', 1, True),
            Sub((("spBv1.0/STATE/host", 1),)),
            Gets((("spBv1.0/STATE/host", b'{"online":true}', True),)),
            Sub((("spBv1.0/plant/NCMD/edge", 1), ("spBv1.0/plant/DCMD/edge/#", 1))),
            Pub("spBv1.0/plant/NBIRTH/edge", b"\x08\x01\x18\x00"),
            Pub("spBv1.0/plant/NDATA/edge", b"\x08\x02\x18\x01"),
            Given("spBv1.0/plant/NCMD/edge", b"rebirth", 1),
            Gets((("spBv1.0/plant/NCMD/edge", b"rebirth", False),)),
            Pub("spBv1.0/plant/NBIRTH/edge", b"\x08\x03\x18\x00"),
            Die(),
            Seen("spBv1.0/plant/NDEATH/edge", b"\x08\x01"),
        ),
        "edge",
        will=Will("spBv1.0/plant/NDEATH/edge", b"\x08\x01", 1),
    ),
}
