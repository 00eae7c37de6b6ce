# remote.py - the recorder over MQTT: publishes the state of its ring as a retained message
# (`head`), answers requests for ranges of segments, and accepts the time. Loaded on demand; owns
# nothing: `record` is a RecordInterceptor, which checks `remote_admin`. FORMAT.md has the topics.
# Allocates.
import binascii
import json
from struct import pack

from slotmq.constants import NONE, PACKET_MAX, REC_SEQ, ROW, U32_MOST, WARNING
from slotmq.delivery import retain
from slotmq.platform import log, ondemand
from slotmq.recorder import files
from slotmq.recorder.wall_clock import anchor

_STATE = b"""\
{"board":"%s","boot":%d,"first":%d,"segment":%d,"length":%d,"next":%d,"size":%d}"""
_ASKED = b"segment", b"offset", b"length"
_TIME = b"$SLOTMQ/time"
_BY_MESSAGE = 2  # qualities of an anchor
_QUALITIES = {"harvester": 3, "ntp": 4}
_OLDEST = 1600000000  # seconds: an earlier time is refused
_ANSWER_HEAD = 12
_AROUND = 7  # the most bytes of PUBLISH beside topic and payload
_ANSWER_MOST = 1024  # the heap contains an answer four times for a moment
_FROM_COMPUTERS = 16384


def publish(record, topic, payload, qos, retain):
    """Broker.publish(), called by the program itself."""
    is_done = _publishing(record).publish(record.broker, topic, payload, qos, retain)
    name = topic.encode() if isinstance(topic, str) else topic
    data = payload.encode() if isinstance(payload, str) else payload
    flags = qos | (4 if retain else 0)
    record.rec.message(NONE, name, 0, len(name), flags, data, 0, len(data))
    if name == _TIME:
        _obey(record, NONE, name, data)
    return is_done


def handle(record, session, name, topic, n, buf, at, size):
    """A client has published to $SLOTMQ/..., and remote_admin allows that."""
    _obey(record, session, bytes(name[topic : topic + n]), bytes(buf[at : at + size]))


def _obey(record, session, name, payload):
    # session: the client's; NONE: the program itself has published that.
    try:
        if name == _TIME:
            _set_time(record, payload)
        elif name == _topic(record, b"get"):
            _answer(record, session, payload)
    except MemoryError:
        raise
    except Exception:  # whatever a client sends must not end the broker
        broker = record.broker
        if ondemand.take("platform.said", broker.now).may(broker, WARNING, b"%d" % session, name):
            log.write(WARNING, "The recorder: %r: not understood." % str(name, "utf-8"))


def _publishing(record):
    return ondemand.take("embed.publishing", record.broker.now)


def update(record):
    """Publish the state of the ring, retained; if that fails, the next flush tries again."""
    try:
        _publish_head(record)
    except (OSError, ValueError):
        pass


def _publish_head(record):
    rec = record.rec
    broker = record.broker
    files.look(rec)
    text = _STATE % (
        binascii.hexlify(rec.board),
        rec.boot,
        rec.first,
        rec.newest,
        files.length(rec, rec.newest),
        rec.o[REC_SEQ],
        rec.size,
    )
    name = _topic(record, b"head")
    if broker.journal:
        _take_out(broker, name)
    refused = broker.retained.refused, broker.messages.refused
    is_sent = _publishing(record).send(broker, name, text, 0, True)
    # A refusal is tried again and again; an event for each would cause the next flush.
    broker.retained.refused, broker.messages.refused = refused
    if broker.journal:
        _leave_out(broker, name)
    rec.head_is_current = is_sent and broker.retained.find(name, 0, len(name)) != NONE


# Each start publishes its own head, so it need not be in the journal, where it would cost a commit
# for each flush. The journal has a row of it only if a compaction wrote all slots.


def _take_out(broker, name):
    # Before a new head: remove the journal's row of the old one, whose slots may be used again
    # only then.
    retained = broker.retained
    slot = retained.find(name, 0, len(name))
    if slot != NONE and retained.dirty[slot] & ROW:
        retain.set_message(broker, name, 0, len(name), NONE)
        broker.journal.commit()


def _leave_out(broker, name):
    retained = broker.retained
    slot = retained.find(name, 0, len(name))
    if slot != NONE and not retained.dirty[slot] & ROW:
        retained.dirty[slot] = 0


def _topic(record, what):
    return b"$SLOTMQ/record/%s/%s" % (binascii.hexlify(record.rec.board), what)


def _answer(record, session, payload):
    broker = record.broker
    asked = json.loads(payload)
    segment, at, n = [int(asked[str(key, "utf-8")]) for key in _ASKED]
    reply = asked["reply"]
    fits = 0 <= min(segment, at, n) and max(segment, at) <= U32_MOST
    if not fits or not isinstance(reply, str) or reply[:1] == "$":
        raise ValueError
    reply = reply.encode()
    acl = broker.acl
    if acl and session != NONE and not acl.may_write(session, reply, 0, len(reply)):
        raise ValueError  # it may not have the broker publish what it may not publish itself
    length = files.length(record.rec, segment)
    data = b""
    if length < 0:
        length = U32_MOST
    elif at < length:
        most = broker.pkt[PACKET_MAX] - _AROUND - len(reply) - _ANSWER_HEAD
        most = min(most, _ANSWER_MOST if ondemand.IS_SMALL else _FROM_COMPUTERS)
        data = files.read(record.rec, segment, at, max(0, min(n, length - at, most)))
    head = pack("<III", segment, at, length)
    publishing = _publishing(record)
    publishing.checked(broker, reply, b"", 0, False)
    publishing.send(broker, reply, head + data, 0, False)


def _set_time(record, payload):
    # seconds, with or without a fraction; an error bound in ms; the source
    words = payload.decode().split()
    seconds, _, fraction = words[0].partition(".")
    seconds, ms = int(seconds), int((fraction + "000")[:3])
    error = int(words[1]) if len(words) > 1 else 1000
    quality = _QUALITIES[words[2]] if len(words) > 2 else _BY_MESSAGE
    fits = _OLDEST < seconds <= U32_MOST and 0 <= error <= U32_MOST
    if not fits or ms < 0 or len(words) > 3:
        raise ValueError
    record.clock()
    anchor(record.rec, quality, seconds, ms, error)
