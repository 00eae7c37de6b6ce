# restore.py - a start with what the journal holds: which generation counts, its rows back
# in the tables, and what time has made of them.
#
# Twice through: first to find the last COMMIT, then to take over what stands before it.
# Afterwards the journal begins a new generation, so nothing is ever written behind a torn
# tail. Borrowed by the start: allocates.
from slotmq import lifecycle
from slotmq.journal import Journal
from slotmq.journal_reader import Reader, last_commit
from slotmq.restore_rows import Restorer
from slotmq.runtime import const

_NONE = const(0xFFFF)
_EXTRA = const(8)


def restore(broker, medium, say=print, *sync):
    """Put back what the medium holds, and keep all that follows in it; the broker's journal.

    Before the first client. sync: does nothing leave before it is kept? Else, seconds.

    say(text) is told what was not as it should be. OSError: a limit is too low for what
    was promised, or there is no room to write."""
    newest = 0
    longest = broker.limits.topic_bytes + 64
    longest = max(longest, broker.limits.client_id_bytes + 64, 4 * broker.limits.received + 8)
    for generation in medium.generations():
        newest = max(newest, generation)
        reader = Reader(medium, generation, longest)
        end, torn = last_commit(reader)
        if end:
            if torn:
                say("its end was cut off: what was written last does not count")
            restorer = Restorer(broker, reader)
            restorer.take_over(end)
            settle(broker, restorer)
            break
        say("generation %d is damaged, kept as %s" % (generation, medium.set_aside(generation)))
    broker.journal = journal = Journal(broker, medium, newest, *sync)
    journal.compact()
    return journal


def settle(broker, restorer):
    """The broker's time begins anew: what was counted goes on, wills of the connected go out."""
    five = broker.five
    if five:
        _expire_later(broker, five, restorer.now)
    for session, was_connected in restorer.connected.items():
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


def _disconnect(broker, session, was_connected):
    # The power cut was the end of its connection, if it had one.
    five = broker.five
    if broker.sessions.clean[session]:
        lifecycle.publish_will(broker, session)
        lifecycle.end_session(broker, session)
    elif was_connected and not (five and five.keeps_will(broker, session)):
        lifecycle.publish_will(broker, session)
