# arguments_cpython.py - checks what a program on CPython gives to a Broker, so that a mistake is a
# clear TypeError or ValueError at once. Boards do not have it. Owns nothing but the error of a
# broker that is closed. Allocates.
from slotmq.config.limits import Limits
from slotmq.config.other_keys import suggestion
from slotmq.config.settings import Settings
from slotmq.fast import path_cpython as path
from slotmq.platform import ondemand

_HOOKS = (
    "may_connect may_publish may_subscribe on_connect on_disconnect on_publish auth forget"
    " with_peer cache_verdicts"
).split()
_CALLED = _HOOKS[:8]
_OWN = "listeners", "when_full"  # of each Settings


class Closed(RuntimeError):
    """The broker is closed."""


def check_broker(limits, settings):
    """TypeError, ValueError: these are not what Broker() takes."""
    for name, value, kind in (("limits", limits, Limits), ("settings", settings, Settings)):
        if value is not None and not isinstance(value, kind):
            text = "Broker(limits, settings): expected %s=%s(...), not %s"
            raise TypeError(text % (name, kind.__name__, _shown(value)))
    if settings is not None:
        _check_settings(settings)


def _check_settings(settings):
    own = vars(settings)
    for name, value in own.items():
        default = getattr(Settings, name, None)
        if not hasattr(Settings, name) and name not in _OWN and not _row(name):
            Settings(**{name: value})  # TypeError, or it is known there
        elif isinstance(default, (bool, int, str, bytes)) and not _fits(value, default):
            kind = type(default).__name__
            raise TypeError("%s: expected %s, not %s" % (name, kind, _shown(value)))
        elif type(default) is int:
            _check_bounds(name, value)
    if not isinstance(settings.when_full, dict):
        raise TypeError("when_full: expected a dict, not " + _shown(settings.when_full))
    tables = ondemand.take("config.policies", 0).defaults()
    for name in settings.when_full:
        if name not in tables:
            text = "when_full: no table is called " + str(name)
            raise ValueError(text + suggestion(name, tables))


def _check_bounds(name, value):
    # As in a line of a configuration; 0 is the size of the table
    words = _row(name)
    if words and words[2] in ("number", "size"):
        least, most = int(words[3]), int(words[4])
        if not least <= value <= most and (value or words[2] == "number"):
            raise ValueError("%s: %d to %d, not %d" % (name, least, most, value))


def _row(name):
    # What a configuration may say about this key; None: nothing
    fields = ondemand.take("config.mosquitto_conf", 0).FIELDS
    for words in ondemand.take("config.policies", 0).rows(fields):
        if words[0] == name:
            return words
    return None


def _fits(value, default):
    if isinstance(default, bool):
        return value in (0, 1)
    return isinstance(value, type(default))


def check_address(host, port):
    """TypeError, ValueError: listen() cannot have that address."""
    if not isinstance(host, str):
        raise TypeError("listen(): host: expected a str, not " + _shown(host))
    if not isinstance(port, int):
        raise TypeError("listen(): port: expected a number, not " + _shown(port))
    if not 0 <= port <= 65535:
        raise ValueError("listen(): port: 0 (any free one) to 65535, not %d" % port)


def check_hooks(hooks):
    """TypeError: no object with hooks. ValueError: a name that is almost that of a hook."""
    if isinstance(hooks, type):
        raise TypeError("hooks: expected an object, %s(), not the class" % hooks.__name__)
    for name in dir(hooks):
        if name in _CALLED:
            if not callable(getattr(hooks, name)):
                raise TypeError("hooks: %s: expected a function" % name)
        elif name.startswith(("may_", "on_")):
            near = suggestion(name, _HOOKS)
            if near:
                raise ValueError("hooks: no hook is called " + name + near)


def encoded(text):
    """As bytes; TypeError: neither a text nor bytes."""
    if isinstance(text, str):
        return text.encode()
    if not isinstance(text, (bytes, bytearray, memoryview)):
        raise TypeError("expected a str or bytes, not " + _shown(text))
    return text


def forward(broker, topic, payload, qos):
    """Send a message as the fast path does with that of a client of version 3. False, and
    nothing has changed: a client's would go to the handlers."""
    body = topic + payload  # of a memoryview all bytes; its length would be that of its items
    rest = len(body) + 2
    if qos or rest > 16383:
        return False
    length = bytes((rest & 127 | 128, rest >> 7)) if rest > 127 else bytes((rest,))
    packet = b"\x30" + length + len(topic).to_bytes(2, "big") + body
    broker.turn_soon = 1  # the next turn must not wait before it sends
    slot_of = broker.subscriptions.routes.slot_of
    return path.forward(broker, slot_of, packet, 0, len(packet), False) > 0


def _shown(value):
    text = repr(value)
    return "%s of type %s" % (text if len(text) < 40 else text[:37] + "...", type(value).__name__)
