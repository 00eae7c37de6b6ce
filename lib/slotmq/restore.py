# restore.py - a start's look at the journal: which generation counts, how far it is
# whole, and its rows put back into the tables. FORMAT.md has the records byte by byte.
#
# Twice through: first to find the last COMMIT, then to take over what stands before it.
# Slots of the journal are those of the broker that wrote it: sessions, messages and
# subscriptions may get others here, which `slot_of` remembers; a delivery keeps its own,
# since its packet id was promised. After it the journal begins a new generation, so
# nothing is ever written behind a torn tail. Borrowed by the start: allocates.
from slotmq import lifecycle
from slotmq.journal import VERSION, Journal
from slotmq.runtime import const, finish, unref
from slotmq.runtime_journal import crc_add, crc_put, crc_start, crc_state

_NONE = const(0xFFFF)
_QUEUED = const(0)
_RELEASED = const(3)
_FREE = const(4)
_DUP = const(8)
_EXTRA = const(8)
_NEVER = const(0x3FFFFFFF)
_HEAD = const(1)
_MESSAGE = const(6)
_COMMIT = const(13)
_CLEAN = const(1)
_CONNECTED = const(2)
_WILL = const(4)
_MARKED = const(8)


def u16(buf, at):
    return buf[at] << 8 | buf[at + 1]


def u32(buf, at):
    return u16(buf, at) << 16 | u16(buf, at + 2)


class Reader:
    """The records of one generation."""

    def __init__(self, medium, generation, longest):
        self.medium = medium
        self.generation = generation
        medium.open(generation)
        self.buf = bytearray(max(longest, 64))
        self.seed = bytearray(4)
        for i in range(4):
            self.seed[i] = generation >> 8 * (3 - i) & 255
        self.crc = crc_state()
        # Of the record that was found last
        self.kind = self.body = self.size = self.next = 0

    def find(self, at):
        """Look at the record that begins at `at`; False: there is none that is whole."""
        buf = self.buf
        had = self.medium.readinto(at, buf, 5)
        self.kind = buf[0]
        size = shift = 0
        i = 1
        while True:
            if i >= had or shift > 21:
                return False
            size |= (buf[i] & 127) << shift
            i += 1
            if buf[i - 1] < 128:
                break
            shift += 7
        crc_start(self.crc)
        crc_add(self.crc, self.seed, 0, 4)
        crc_add(self.crc, buf, 0, i)
        self.body = at + i
        self.size = size
        self.next = self.body + size + 4
        return self._is_whole()

    def _is_whole(self):
        at = self.body
        end = at + self.size
        buf = self.buf
        while at < end:
            n = self.medium.readinto(at, buf, min(len(buf), end - at))
            if not n:
                return False
            crc_add(self.crc, buf, 0, n)
            at += n
        if self.medium.readinto(end, buf, 4) < 4:
            return False
        crc_put(self.crc, buf, 4)
        return buf[:4] == buf[4:8]

    def read_body(self, off=0, most=None):
        """Read the body, or so many bytes of it from `off`, to buf; -> how many."""
        n = min(len(self.buf), self.size - off)
        return self.medium.readinto(self.body + off, self.buf, n if most is None else min(n, most))

    def after(self, at):
        """Where a record may begin that follows what ends at `at`: padding is stepped over."""
        page = self.medium.page
        if page > 1 and self.medium.readinto(at, self.buf, 1) and self.buf[0] == 0xFF:
            return (at + page - 1) // page * page
        return at


def last_commit(reader):
    """Where the last COMMIT ends, 0 if there is none; and whether more came behind it that
    is not whole."""
    at = end = 0
    while True:
        at = reader.after(at)
        if not reader.find(at):
            break
        if at == 0 and reader.kind != _HEAD:
            break
        at = reader.next
        if reader.kind == _COMMIT:
            end = at
    torn = reader.medium.readinto(at, reader.buf, 1) == 1 and reader.buf[0] != 0xFF
    return end, torn


class Restorer:
    """Takes over rows into the empty tables of a broker."""

    def __init__(self, broker, reader):
        self.broker = broker
        self.reader = reader
        self.sessions = {}  # slot in the journal: slot here
        self.messages = {}
        self.subscriptions = {}
        self.retained = {}
        self.connected = {}  # session here: how its connection stood
        self.now = 0  # of the last COMMIT
        self.steps = (
            None,
            self._head,
            self._session,
            self._session_gone,
            self._subscription,
            self._subscription_gone,
            self._message,
            self._delivery,
            self._delivery_released,
            self._delivery_gone,
            self._received,
            self._retained,
            self._retained_gone,
            self._commit,
        )

    def take_over(self, end):
        """All records before `end`."""
        deliveries = self.broker.deliveries
        deliveries.count[2] = deliveries.count[3] = _NONE
        reader = self.reader
        at = 0
        while at < end:
            at = reader.after(at)
            reader.find(at)
            if reader.kind >= len(self.steps):
                raise OSError("its record %d is of a newer version" % reader.kind)
            n = reader.read_body()
            self.steps[reader.kind](reader.buf, n)
            at = reader.next
        self._chain_free()
        for msg in self.messages.values():
            unref(self.broker.queue, msg)

    def _chain_free(self):
        # Packet ids decided which deliveries are in use; the others are free, in turn.
        deliveries = self.broker.deliveries
        count = deliveries.count
        count[2] = count[3] = _NONE
        for slot in range(deliveries.slots):
            if deliveries.state[slot] == _FREE:
                deliveries.next[slot] = _NONE
                if count[3] == _NONE:
                    count[2] = slot
                else:
                    deliveries.next[count[3]] = slot
                count[3] = slot

    def _head(self, buf, n):
        if buf[0] != VERSION:
            raise OSError("it is of version %d, and this is slotmq of version %d" % (buf[0], VERSION))

    def _commit(self, buf, n):
        # What nobody holds at the end of a commit was let go of.
        self.now = u32(buf, 0)
        messages = self.broker.messages
        for key in list(self.messages):
            msg = self.messages[key]
            if messages.refs[msg] == 1:
                unref(self.broker.queue, msg)
                del self.messages[key]

    def _message(self, buf, n):
        broker = self.broker
        messages = broker.messages
        slot = u16(buf, 0)
        flags = buf[2]
        expires = u32(buf, 3)
        props = u32(buf, 7)
        size = self.reader.size - 11
        msg = messages.count[2]
        first = messages.arena.take(size) if msg != messages.slots else _NONE
        if first == _NONE:
            raise OSError("its messages find no room; raise the limits messages and message_bytes")
        if slot in self.messages:
            unref(broker.queue, self.messages[slot])
        self.messages[slot] = msg
        messages.count[2] = messages.next[msg]
        messages.count[0] += 1
        messages.count[1] = max(messages.count[0], messages.count[1])
        messages.first[msg] = first
        messages.topic_len[msg] = u16(buf, 11)
        messages.payload_len[msg] = size - 2 - messages.topic_len[msg]
        messages.refs[msg] = 1
        messages.flags[msg] = flags
        if flags & _EXTRA and broker.five:
            broker.five.props[msg] = props
            broker.five.expires[msg] = _signed(expires)
        off = 0
        while off < size:
            n = self.reader.read_body(11 + off)
            messages.arena.move(first, off, self.reader.buf, 0, n, 0)
            off += n

    def _held(self, slot):
        msg = self.messages[slot]
        self.broker.messages.refs[msg] += 1
        return msg

    def _session(self, buf, n):
        # A slot that another client id had before is that one's no more.
        broker = self.broker
        sessions = broker.sessions
        slot = u16(buf, 0)
        flags = buf[2]
        here = self.sessions.get(slot, _NONE)
        if here != _NONE and sessions.client_id(here) != bytes(buf[25:n]):
            self._end(slot)
            here = _NONE
        if here == _NONE:
            here = sessions.take(buf, 25, n - 25)
            if here == _NONE:
                raise OSError("its sessions find no room; raise the limit sessions")
            self.sessions[slot] = here
        self.connected[here] = flags & _CONNECTED
        sessions.clean[here] = flags & _CLEAN
        sessions.left[here] = _signed(u32(buf, 3))
        if sessions.will[here] != _NONE:
            unref(broker.queue, sessions.will[here])
        sessions.will[here] = self._held(u16(buf, 11)) if flags & _WILL else _NONE
        five = broker.five
        if five:
            five.expiry[here] = u32(buf, 7)
            five.will_delay[here] = u32(buf, 13)
            five.will_at[here] = _signed(u32(buf, 17))
            five.will_since[here] = _signed(u32(buf, 21))
            if flags & _MARKED:
                five.mark(broker, here)

    def _session_gone(self, buf, n):
        self._end(u16(buf, 0))

    def _end(self, slot):
        # Its rows go with it; nothing is published and nothing is passed on.
        broker = self.broker
        sessions = broker.sessions
        session = self.sessions.pop(slot)
        will = sessions.will[session]
        if will != _NONE:
            sessions.will[session] = _NONE
            unref(broker.queue, will)
        for key in list(self.subscriptions):
            if broker.subscriptions.session[self.subscriptions[key]] == session:
                broker.subscriptions.remove(sessions, self.subscriptions.pop(key))
        while sessions.head[session] != _NONE:
            finish(broker.queue, sessions.head[session])
        self._forget_received(session)
        sessions.free(session)

    def _forget_received(self, session):
        sessions = self.broker.sessions
        while sessions.id_count[session]:
            at = session * sessions.received + sessions.id_count[session] - 1
            msg = sessions.remove_received(session, at)
            if msg != _NONE:
                unref(self.broker.queue, msg)

    def _received(self, buf, n):
        sessions = self.broker.sessions
        session = self.sessions[u16(buf, 0)]
        ids = [(u16(buf, i), u16(buf, i + 2)) for i in range(2, n, 4)]
        held = [self._held(msg) if msg != _NONE else _NONE for _, msg in ids]
        self._forget_received(session)
        for i in range(len(ids)):
            at = sessions.add_received(session, ids[i][0])
            if at < 0:
                raise OSError("its receive lists find no room; raise the limit received")
            if sessions.id_msg is not None:
                sessions.id_msg[at] = held[i]
            elif held[i] != _NONE:
                unref(self.broker.queue, held[i])

    def _subscription(self, buf, n):
        broker = self.broker
        subs = broker.subscriptions
        session = self.sessions[u16(buf, 2)]
        share = buf[10]
        start = 11 + share
        self._subscription_gone(buf, n)
        node = subs.add_node(buf, start, n - start)
        five = broker.five
        group = _NONE
        if share and node != _NONE:
            group = five.shares.take(node, buf, 11, share) if five else _NONE
            if group == _NONE:
                raise OSError("its shared subscriptions find no room; raise the limit shares")
        sub = subs.add(broker.sessions, session, node, buf[4], group) if node != _NONE else _NONE
        if sub == _NONE:
            raise OSError("its subscriptions find no room; raise their limits")
        self.subscriptions[u16(buf, 0)] = sub
        if five:
            if group != _NONE:
                five.shares.joined(group, True)
            five.options[sub] = buf[5]
            five.identifier[sub] = u32(buf, 6)

    def _subscription_gone(self, buf, n):
        sub = self.subscriptions.pop(u16(buf, 0), _NONE)
        if sub != _NONE:
            self.broker.subscriptions.remove(self.broker.sessions, sub)

    def _delivery(self, buf, n):
        # At the end of its session's list, in the slot that is its packet id.
        broker = self.broker
        deliveries = broker.deliveries
        sessions = broker.sessions
        slot = u16(buf, 0)
        if slot >= deliveries.slots:
            raise OSError("its packet ids find no room; raise the limit deliveries")
        msg = u16(buf, 4)
        msg = _NONE if msg == _NONE else self._held(msg)
        self._delivery_gone(buf, n)
        session = self.sessions[u16(buf, 2)]
        tail = sessions.tail[session]
        deliveries.session[slot] = session
        deliveries.msg[slot] = msg
        deliveries.state[slot] = _RELEASED if msg == _NONE else _QUEUED
        deliveries.flags[slot] = buf[6] | _DUP  # it may have been sent
        deliveries.prev[slot] = tail
        deliveries.next[slot] = _NONE
        if tail == _NONE:
            sessions.head[session] = sessions.cursor[session] = slot
        else:
            deliveries.next[tail] = slot
        sessions.tail[session] = slot
        if msg == _NONE:
            sessions.inflight[session] += 1
        else:
            sessions.queued[session] += 1
        deliveries.count[0] += 1
        deliveries.count[1] = max(deliveries.count[0], deliveries.count[1])
        if broker.five:
            broker.five.came_by(slot, u16(buf, 7), u32(buf, 9))

    def _delivery_released(self, buf, n):
        deliveries = self.broker.deliveries
        slot = u16(buf, 0)
        session = deliveries.session[slot]
        self.broker.sessions.queued[session] -= 1
        self.broker.sessions.inflight[session] += 1
        deliveries.state[slot] = _RELEASED
        unref(self.broker.queue, deliveries.msg[slot])
        deliveries.msg[slot] = _NONE

    def _delivery_gone(self, buf, n):
        slot = u16(buf, 0)
        if self.broker.deliveries.state[slot] != _FREE:
            finish(self.broker.queue, slot)

    def _retained(self, buf, n):
        broker = self.broker
        retained = broker.retained
        msg = self._held(u16(buf, 2))
        self._retained_gone(buf, n)
        size = broker.messages.read_topic(msg, buf, 4)
        here = retained.add(buf, 4, size, msg)
        if here == _NONE:
            raise OSError("its retained messages find no room; raise the limit retained")
        self.retained[u16(buf, 0)] = here

    def _retained_gone(self, buf, n):
        here = self.retained.pop(u16(buf, 0), _NONE)
        if here != _NONE:
            unref(self.broker.queue, self.broker.retained.remove(here))

    def settle(self):
        """The broker's time begins anew: what was counted goes on; wills of the connected go out."""
        broker = self.broker
        sessions = broker.sessions
        five = broker.five
        messages = broker.messages
        if five:
            for msg in range(messages.slots):
                if messages.refs[msg] and messages.flags[msg] & _EXTRA and five.expires[msg]:
                    five.expires[msg] = five.expires[msg] - self.now or -1
            five.expiring(broker)
        for session, was_connected in self.connected.items():
            if not sessions.used(session):
                continue
            sessions.left[session] = 0 if was_connected else sessions.left[session] - self.now
            if five:
                five.will_since[session] -= self.now
                five.will_at[session] -= self.now
            if sessions.clean[session]:
                lifecycle.end_session(broker, session) if five else self._last_will(session)
            elif sessions.will[session] != _NONE:
                if not five or was_connected and not five.keeps_will(broker, session):
                    lifecycle.publish_will(broker, session)
            if five and sessions.used(session):
                five.note_due(broker, session)

    def _last_will(self, session):
        lifecycle.publish_will(self.broker, session)
        lifecycle.end_session(self.broker, session)


def _signed(value):
    return value - (1 << 32) if value >> 31 else value


def restore(broker, medium, say):
    """Put back what the medium holds, and keep all that follows in it; the broker's journal.

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
            restorer.settle()
            break
        say("generation %d is damaged, kept as %s" % (generation, medium.set_aside(generation)))
    broker.journal = journal = Journal(broker, medium, newest)
    journal.compact()
    return journal
