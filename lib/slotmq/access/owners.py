# owners.py - which user each session belongs to.
#
# Owns the names of the users in a set (`limit users`), for each name how many sessions and rules
# refer to it, and two columns beside tables/sessions.py: `user`, a slot of that set or one of the
# three numbers below, and `is_odd`. What ended sessions refer to stays until a slot is needed.
# Loaded and allocated only with acl_file or password_file. Does not allocate after construction,
# but for name().
#
# The user of a client is the user name of its CONNECT, whoever has verified it; an empty one
# counts as none. An older journal does not know the user of a session.
from slotmq.fast import Names
from slotmq.platform import ondemand
from slotmq.platform.arrays import u16
from slotmq.platform.runtime import const

_NONE = const(0xFFFF)  # as an answer of add() and take(): the set is full
_UNKNOWN = const(0xFFFE)  # the journal did not say
_ANONYMOUS = const(0xFFFD)  # no user name
_PROGRAM = const(0xFFFC)  # a client of the surrounding program, without a user name
_NAME_BYTES = const(32)  # bytes of a name, on average


def make(broker):
    """Make a broker's Owners, and its Acl if there is an acl_file. ConfError: that file is bad."""
    broker.owners = Owners(broker.limits, broker.sessions)
    if broker.settings.acl_file:
        broker.acl = ondemand.take("access.acl", 0).Acl(broker)
        broker.on_reload = broker.acl.reload  # the program replaces it: config/reload.py


class Owners:
    def __init__(self, limits, sessions):
        self.sessions = sessions
        n = limits.users
        self.slots = n
        self.names = Names(n, n * _NAME_BYTES)
        self.refs = u16(n)
        self.user = u16(limits.sessions)
        # 1: client id or user name has + or #, so no pattern rule counts
        self.is_odd = bytearray(limits.sessions)
        self.most = limits.client_id_bytes  # of a name
        self.high = self.refused = 0
        for session in range(limits.sessions):
            self.user[session] = _UNKNOWN

    def add(self, name):
        """The slot of a user's name, which is added if it is missing; NONE: there is no space."""
        n = len(name)
        slot = self.names.find(0, name, 0, n)
        if slot == _NONE and n <= self.most:
            slot = self.names.add(0, name, 0, n)
            if slot == _NONE and self._drop_unused():
                slot = self.names.add(0, name, 0, n)
        if slot == _NONE:
            self.refused += 1
        self.high = max(self.high, self.names.count())
        return slot

    def _drop_unused(self):
        names = self.names
        count = names.count()
        for session in range(self.sessions.slots):  # sessions that have ended
            if not self.sessions.used(session):
                self.free(session)
        for slot in range(self.slots):
            if not self.refs[slot] and self.is_used(slot):
                names.remove(slot)
        return names.count() < count

    def is_used(self, slot):
        length = self.names.length[slot]  # 0 if the slot is free, since no name is empty
        return length != 0

    def take(self, fields, stream):
        """The user of a client that connects: a slot, one of the numbers above, or NONE."""
        name = fields.user or fields.read(fields.user_name)
        if name:
            return self.add(name)
        # as in protocol/open_session.py
        return _PROGRAM if hasattr(stream, "publish") else _ANONYMOUS

    def set(self, session, user, client_id):
        """From now on the session is this user's; -> was it not before?"""
        is_new = self.user[session] != user
        if user < self.slots:
            self.refs[user] += 1
        self.free(session)
        self.user[session] = user
        self.is_odd[session] = _is_odd(client_id) or _is_odd(self.name(session) or b"")
        return is_new

    def free(self, session):
        """The session has ended, or is another user's from now on."""
        user = self.user[session]
        if user < self.slots:
            self.refs[user] -= 1
        self.user[session] = _UNKNOWN

    def name(self, session):
        """The name of the session's user as bytes; None: it has none. Allocates."""
        user = self.user[session]
        if user >= self.slots:
            return None
        text = bytearray(self.names.length[user])
        self.names.read(user, text, 0)
        return bytes(text)


def _is_odd(name):
    return 1 if b"+" in name or b"#" in name else 0
