# record.py - how a program with `record` lines makes its recorder: the ring's folder, and what
# passes through the broker. Borrowed by the start: allocates, and keeps nothing.
import gc
import os

from slotmq import ondemand
from slotmq.app import borrow
from slotmq.recorder import Recorder
from slotmq.runtime import MICROPYTHON, const, filter_ok
from slotmq.settings import ConfError
from slotmq.taps import Taps

# Settings beside `record`
DEFAULTS = {
    "record_location": "record",  # the folder
    "record_segment_size": 16384,  # on a computer 256 times as much
    "record_budget": 262144,  # bytes of all segments; the same
    "record_full": "drop_oldest",
    "record_flush_interval": 10,  # seconds that a record waits at most
    "record_events": True,
    "remote_admin": False,  # may clients fetch segments and tell the time?
}
_CONNECT = const(1)  # types of packets
_PUBLISH_TYPE = const(3)
_SUBSCRIBE = const(8)
_UNSUBSCRIBE = const(10)
_AUTH_TYPE = const(15)
_OF_WILL = const(16)
_EEXIST = const(17)
_NEVER = const(0x3FFFFFFF)
_COMPUTERS = const(8)  # bits by which sizes are larger on one, which writes 100 MB a second


def keep(app):
    """Record what passes through an App's broker."""
    ondemand.IS_SMALL and gc.collect()
    if not all(filter_ok(text, 0, len(text)) for text in app.settings.record):
        raise ConfError(_wrong(app, "record", "a topic filter"))
    size, budget = _sizes(app.broker, app.settings)
    if size % 256:
        raise ConfError(_wrong(app, "record_segment_size", "a multiple of 256"))
    if budget < 2 * size:
        raise ConfError(_wrong(app, "record_budget", "at least two times record_segment_size"))
    location = _setting(app.settings, "record_location").rstrip("/") + "/"
    try:
        _make(location)
        lock = None if MICROPYTHON else _lock(location)  # a board has no second broker
        if lock is False:
            what = "a ring that no other broker keeps, not " + location
            raise OSError(_wrong(app, "record_location", what))
        prepare(app.broker, app.settings, location).rec.lock = lock
    except OSError as error:
        if not isinstance(error.args[0], int):
            raise  # it says what it is
        what = "a folder that can be written, not %s (%s)" % (location, error)
        raise ConfError(_wrong(app, "record_location", what))
    except MemoryError:
        raise MemoryError("no heap is left for the recorder; lower limit message_bytes")
    ondemand.IS_SMALL and ondemand.forget_all()


def _lock(location):
    from slotmq.record_file import IDENTITY

    return borrow("places", "lock", location + IDENTITY)


def _wrong(app, key, expected):
    # The line of a key, or where there is none the last one of `record`
    key = key if key in app.lines else "record"
    return "%s:%d: %s: expected %s" % (app.conf, app.lines[key], key, expected)


def attach(broker, settings, location):
    """A broker records from now on; its Taps. OSError: it cannot."""
    taps = prepare(broker, settings, location)
    borrow("record_begin", "begin", taps.rec)
    return taps


def prepare(broker, settings, location):
    """As attach(), but nothing is written of what passes before record_begin.py's begin()."""
    size, budget = _sizes(broker, settings)
    most = max(2, budget // size)
    stops = _setting(settings, "record_full") == "stop"
    about = broker.sessions.names, broker.conns.session, broker.limits, settings.record, stops
    rec = Recorder(location, size, most, *about)
    remote = _setting(settings, "remote_admin")
    broker._loop()
    rec.now = broker.now
    taps = Taps(broker, rec, _setting(settings, "record_flush_interval"), remote)
    _stand_before(broker, taps)
    if _setting(settings, "record_events"):
        taps.events = True
        _watch(broker, taps)
    rec.retry_at = _NEVER
    if ondemand.IS_SMALL:
        for made in (rec, taps, rec.topics, broker.messages.arena):
            type(made).__init__ = None
    return taps


def _stand_before(broker, taps):
    # What the broker and its loop call goes through the Taps from now on.
    broker.recorder = taps
    broker.handle = taps.handle
    taps.joins = broker.first_handlers
    broker.first_handlers = _replaced(taps.joins, taps.let_in, _CONNECT, _AUTH_TYPE)
    taps.inner = broker.handlers[_PUBLISH_TYPE]
    handlers = _replaced(broker.handlers, taps.publish, _PUBLISH_TYPE)
    broker.handlers = _replaced(handlers, taps.publish_will, _OF_WILL)
    five = broker.five
    if five:
        taps.inner5 = five.handlers[_PUBLISH_TYPE]
        five.handlers = _replaced(five.handlers, taps.publish, _PUBLISH_TYPE)
    broker.publish = taps.publish_own
    taps.finish = broker.loop.finish_turn
    broker.loop.finish_turn = taps.finish_turn
    taps.shut = broker.loop.close
    broker.loop.close = taps.close


def _watch(broker, taps):
    # The same for events. SUBSCRIBE and UNSUBSCRIBE have one handler.
    taps.end_it = broker.end
    broker.end = taps.end
    taps.asks = broker.handlers[_SUBSCRIBE]
    broker.handlers = _replaced(broker.handlers, taps.subscribe, _SUBSCRIBE, _UNSUBSCRIBE)
    five = broker.five
    if five:
        taps.asks5 = five.handlers[_SUBSCRIBE]
        five.handlers = _replaced(five.handlers, taps.subscribe, _SUBSCRIBE, _UNSUBSCRIBE)


def _replaced(handlers, by, *types):
    made = list(handlers)
    for kind in types:
        made[kind] = by
    return tuple(made)


def _sizes(broker, settings):
    # Of a segment, and of all. A computer could fill a board's in a millisecond.
    more = _COMPUTERS if broker.limits.rx_bytes > 8192 else 0
    return (
        _setting(settings, "record_segment_size", more),
        _setting(settings, "record_budget", more),
    )


def _setting(settings, name, more=0):
    # getattr() would make a name of it for ever
    return settings.__dict__.get(name, DEFAULTS[name] << more if more else DEFAULTS[name])


def _make(folder):
    try:
        os.mkdir(folder[:-1])
    except OSError as error:
        if error.errno != _EEXIST:
            raise
