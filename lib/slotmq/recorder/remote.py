# remote.py - what a recorder says and is told over MQTT: the state of its ring, which
# is retained, the ranges of segments that somebody asks for, and the time. Loaded on demand
# and owns nothing; `record` is a RecordInterceptor. Who may ask is settled there
# (`remote_admin`). FORMAT.md has the topics. The control plane: allocates.
import binascii
import json
from struct import pack

from slotmq.delivery import retain
from slotmq.platform import log, ondemand
from slotmq.platform.runtime import const
from slotmq.recorder import files
from slotmq.recorder.wall_clock import anchor

_NONE = const(0xFFFF)
_SEQ = const(4)
_ROW = const(4)  # in dirty of a retained message: the journal has a row of the slot
_U32_MOST = 0xFFFFFFFF  # and of a length: there is no such segment
_WARNING = const(2)
_STATE = b"""\
{"board":"%s","boot":%d,"first":%d,"segment":%d,"length":%d,"next":%d,"size":%d}"""
_ASKED = b"segment", b"offset", b"length"
_TIME = b"$SLOTMQ/time"
_BY_MESSAGE = const(2)  # qualities of an anchor
_QUALITIES = {"harvester": 3, "ntp": 4}
_OLDEST = const(1600000000)  # seconds: a time before is no time
_ANSWER_HEAD = const(12)
_AROUND = const(7)  # bytes of PUBLISH beside topic and payload, at most
_ANSWER_MOST = const(1024)  # it is in the heap four times for a moment
_FROM_COMPUTERS = const(16384)


def publish(record, topic, payload, qos, retain):
    """Broker.publish(): the program itself does."""
    taken = _local(record).publish(record.broker, topic, payload, qos, retain)
    name = topic.encode() if isinstance(topic, str) else topic
    data = payload.encode() if isinstance(payload, str) else payload
    flags = qos | (4 if retain else 0)
    record.rec.message(_NONE, name, 0, len(name), flags, data, 0, len(data))
    if name == _TIME:
        _told(record, name, data)
    return taken


def handle(record, name, topic, n, buf, at, size):
    """Somebody has published to $SLOTMQ/..., who may ask and tell."""
    _told(record, bytes(name[topic : topic + n]), bytes(buf[at : at + size]))


def _told(record, name, payload):
    try:
        if name == _TIME:
            _set_time(record, payload)
        elif name == _topic(record, b"get"):
            _answer(record, payload)
    except MemoryError:
        raise
    except Exception:  # whatever a client says: it must not end the broker
        log.write(_WARNING, "The recorder: %r: not understood." % str(name, "utf-8"))


def _local(record):
    return ondemand.take("embed.local", record.broker.now)


def tell(record):
    """The state of the ring, retained; what cannot be told now is told after the next flush."""
    try:
        _tell(record)
    except (OSError, ValueError):
        pass


def _tell(record):
    rec = record.rec
    files.look(rec)
    state = binascii.hexlify(rec.board), rec.boot, rec.first, rec.newest
    text = _STATE % (state + (files.length(rec, rec.newest), rec.o[_SEQ], rec.size))
    name = _topic(record, b"head")
    if record.broker.journal:
        _take_out(record.broker, name)
    broker = record.broker
    refused = broker.retained.refused, broker.messages.refused
    is_told = _local(record).send(broker, name, text, 0, True)
    # It is tried again and again; an event each time would be one more to be flushed and told.
    broker.retained.refused, broker.messages.refused = refused
    if record.broker.journal:
        _leave_out(record.broker, name)
    rec.is_told = is_told and broker.retained.find(name, 0, len(name)) != _NONE


# Each start makes a head of its own, so none is worth the journal's wear, which would have a
# commit for each flush. It has a row of one only where a compaction took all there was.


def _take_out(broker, name):
    # Only then may the slots of its topic and its message be others'.
    retained = broker.retained
    slot = retained.find(name, 0, len(name))
    if slot != _NONE and retained.dirty[slot] & _ROW:
        retain.keep(broker, name, 0, len(name), _NONE)
        broker.journal.commit()


def _leave_out(broker, name):
    retained = broker.retained
    slot = retained.find(name, 0, len(name))
    if slot != _NONE and not retained.dirty[slot] & _ROW:
        retained.dirty[slot] = 0


def _topic(record, what):
    return b"$SLOTMQ/record/%s/%s" % (binascii.hexlify(record.rec.board), what)


def _answer(record, payload):
    asked = json.loads(payload)
    segment, at, n = [int(asked[str(key, "utf-8")]) for key in _ASKED]
    reply = asked["reply"]
    if not isinstance(reply, str) or reply[:1] == "$" or min(segment, at, n) < 0:
        raise ValueError
    if max(segment, at) > _U32_MOST:
        raise ValueError
    reply = reply.encode()
    length = files.length(record.rec, segment)
    data = b""
    if length < 0:
        length = _U32_MOST
    elif at < length:
        most = record.broker.pkt[10] - _AROUND - len(reply) - _ANSWER_HEAD
        most = min(most, _ANSWER_MOST if ondemand.IS_SMALL else _FROM_COMPUTERS)
        data = files.read(record.rec, segment, at, max(0, min(n, length - at, most)))
    head = pack("<III", segment, at, length)
    local = _local(record)
    local.checked(record.broker, reply, b"", 0, False)
    local.send(record.broker, reply, head + data, 0, False)


def _set_time(record, payload):
    # seconds, with or without a fraction; an error bound in ms; who says so
    words = payload.decode().split()
    seconds, _, fraction = words[0].partition(".")
    seconds, ms = int(seconds), int((fraction + "000")[:3])
    error = int(words[1]) if len(words) > 1 else 1000
    quality = _QUALITIES[words[2]] if len(words) > 2 else _BY_MESSAGE
    if not _OLDEST < seconds <= _U32_MOST or not 0 <= error <= _U32_MOST:
        raise ValueError
    if ms < 0 or len(words) > 3:
        raise ValueError
    record.clock()
    anchor(record.rec, quality, seconds, ms, error)
