# restore_rows.py - the records of a journal put back into empty tables, as journal_rows.py
# wrote them.
#
# Slots of the journal are those of the broker that wrote it: sessions, messages and
# subscriptions may get others here, which dicts remember; a delivery keeps its own, since
# its packet id was promised. Allocates.
from slotmq.journal import VERSION
from slotmq.journal_reader import signed, u16, u32
from slotmq.restore_messages import Messages
from slotmq.runtime import const, finish, unref

_NONE = const(0xFFFF)
_IS_CLEAN = const(1)
_CONNECTED = const(2)
_WILL = const(4)
_MARKED = const(8)


class Restorer(Messages):
    """Takes over rows into the empty tables of a broker."""

    def __init__(self, broker, reader):
        Messages.__init__(self, broker, reader)
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
            self.message,
            self.delivery,
            self.delivery_released,
            self.delivery_gone,
            self._received,
            self._retained,
            self._retained_gone,
            self._commit,
        )

    def take_over(self, end):
        """All records before `end`."""
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
        self.chain_free()
        for msg in self.messages.values():
            unref(self.broker.queue, msg)

    def _head(self, buf, n):
        if buf[0] != VERSION:
            raise OSError("it is of version %d, not %d" % (buf[0], VERSION))

    def _commit(self, buf, n):
        # What nobody holds at the end of a commit was let go of.
        self.now = u32(buf, 0)
        messages = self.broker.messages
        for key in list(self.messages):
            msg = self.messages[key]
            if messages.refs[msg] == 1:
                unref(self.broker.queue, msg)
                del self.messages[key]

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
        sessions.clean[here] = flags & _IS_CLEAN
        sessions.left[here] = signed(u32(buf, 3))
        if sessions.will[here] != _NONE:
            unref(broker.queue, sessions.will[here])
        sessions.will[here] = self.held(u16(buf, 11)) if flags & _WILL else _NONE
        five = broker.five
        if five:
            five.expiry[here] = u32(buf, 7)
            five.will_delay[here] = u32(buf, 13)
            five.will_at[here] = signed(u32(buf, 17))
            five.will_since[here] = signed(u32(buf, 21))
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
        held = [self.held(msg) if msg != _NONE else _NONE for _, msg in ids]
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

    def _retained(self, buf, n):
        broker = self.broker
        retained = broker.retained
        msg = self.held(u16(buf, 2))
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
