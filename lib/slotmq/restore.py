# restore.py - a start with what the journal holds: which generation counts, its rows back
# in the tables, and what time has made of them.
#
# Twice through: first to find the last COMMIT, then for what counts before it.
# Afterwards the journal begins a new generation, so nothing is ever written behind a torn
# tail. What is damaged is said and set aside, and the start goes on with what is whole: only
# limits that are too low for it, which somebody must raise, end it, and rows that contradict
# one another, which the next start does not find. Borrowed by the start: allocates.
from slotmq import lifecycle, ondemand
from slotmq.journal import VERSION
from slotmq.journal_reader import DAMAGED, Reader, last_commit
from slotmq.restore_rows import Restorer
from slotmq.runtime import const, finish, unref

_NONE = const(0xFFFF)
_QUEUED = const(0)
_FORMAT = const(1)  # of the media
_EXTRA = const(8)


def restore(broker, medium, say=print, *sync):
    """Put back what the medium holds, and keep all that follows in it; the broker's journal.

    Before the first client. sync: does nothing leave before it is kept? Else, seconds.

    say(text) is told what was not as it should be. OSError: a limit is too low for what
    was promised, or nothing can be written, for another reason than a lack of room."""
    newest, restorer = read_back(broker, medium, say)
    if restorer:
        settle(broker, restorer)
    control = ondemand.take("journal_control", broker.now)
    return control.begin(broker, medium, newest, say, *sync)


def read_back(broker, medium, say):
    """Put back what the medium holds; -> its newest generation, and for settle() what is to be
    done with it."""
    ondemand.take("subscribing", broker.now)  # planting.py is in its file: it goes with that
    newest, restorer = 0, None
    longest = broker.limits.topic_bytes + 64
    longest = max(longest, broker.limits.client_id_bytes + 64, 4 * broker.limits.received + 8)
    generations = medium.generations()
    for generation in generations:
        newest = max(newest, generation)
        reader = Reader(medium, generation, longest)
        end, torn = last_commit(reader, VERSION)
        if end:
            if torn == DAMAGED:
                kept = medium.set_aside(generation, True)
                kept = _as(kept) or "; no copy of it is kept"
                say("generation %d is damaged behind byte %d%s" % (generation, end, kept))
            elif torn:
                say("its end was cut off: what was written last does not count")
            if generation == generations[0] and getattr(medium, "failed", False):
                kept = _as(medium.set_aside(0))
                text = "what was newer has rotted%s; it goes on with generation %d"
                say(text % (kept, generation))
            restorer = _take_over(broker, reader, end)
            break
        kept = _as(medium.set_aside(generation))
        say("generation %d is %s%s" % (generation, _newer(torn, VERSION) or "damaged", kept))
    if not generations:
        kept = medium.set_aside(0)
        if kept is not None:  # there was something
            newer = _newer(medium.is_foreign, _FORMAT)
            say("what is there %s%s" % ("is " + newer if newer else "cannot be read", _as(kept)))
    return newest, restorer


def _newer(version, known):
    return "of version %d, this broker knows %d" % (version, known) if version > known else ""


def _as(name):
    return "; kept as " + name if name else ""


def _take_over(broker, reader, end):
    restorer = Restorer(broker, reader)
    try:
        restorer.take_over(end)
    except (IndexError, KeyError):
        # No broker has written this. The next start will not find it.
        kept = _as(reader.medium.set_aside(reader.generation))
        raise OSError("generation %d contradicts itself%s" % (reader.generation, kept))
    return restorer


def settle(broker, restorer):
    """The broker's time begins anew: what was counted goes on, wills of the connected go out."""
    five = broker.five
    if five:
        _expire_later(broker, five, restorer.now)
    else:
        _end_expired(broker, restorer.expired)
    for session, msg in restorer.due:
        _publish(broker, session, msg, msg in restorer.expired)
    for session in sorted(restorer.connected):
        was_connected = restorer.connected[session]
        if not broker.sessions.used(session):
            continue
        left = broker.sessions.left
        left[session] = 0 if was_connected else left[session] - restorer.now
        if five:
            five.will_since[session] -= restorer.now
            five.will_at[session] -= restorer.now
        _disconnect(broker, session, was_connected)
        if five and broker.sessions.used(session):
            five.note_due(broker, session)


def _expire_later(broker, five, now):
    messages = broker.messages
    for msg in range(messages.slots):
        if messages.refs[msg] and messages.flags[msg] & _EXTRA and five.expires[msg]:
            five.expires[msg] = five.expires[msg] - now or -1
    five.expiring(broker)


def _end_expired(broker, expired):
    # What ends them with version 5 does not come without it (Version5._sweep). That of a will
    # counts from when it is published.
    retained = broker.retained
    for at in range(retained.slots):
        if retained.msg[at] in expired:
            unref(broker.queue, retained.remove(at))
    deliveries = broker.deliveries
    for at in range(deliveries.slots):
        if deliveries.state[at] == _QUEUED and deliveries.msg[at] in expired:
            if not deliveries.may_be_known(at):
                finish(broker.queue, at)
    held = broker.sessions.id_msg
    for at in range(len(held) if held is not None else 0):
        if held[at] in expired:
            unref(broker.queue, held[at])
            held[at] = _NONE


def _publish(broker, session, msg, is_expired):
    # PUBREC was sent for it, and with qos2_delivery receive nobody waits for PUBREL.
    five = broker.five
    if five:
        five.publisher = session
    if not is_expired:
        lifecycle.publish_stored(broker, msg, session)
    unref(broker.queue, msg)
    if five:
        five.publisher = _NONE


def _disconnect(broker, session, was_connected):
    # The power cut was the end of its connection, if it had one. Nothing counts a will's
    # delay without version 5.
    five = broker.five
    if broker.sessions.clean[session]:
        lifecycle.publish_will(broker, session)
        lifecycle.end_session(broker, session)
    elif not five or was_connected and not five.keeps_will(broker, session):
        lifecycle.publish_will(broker, session)
