# owners.py - which user each session belongs to.
#
# Owns the names of the users (`limit users`), for each name how many sessions and rules refer to
# it, and two columns beside tables/sessions.py: `user`, a slot of the names or one of the three
# numbers below, and `is_odd`. What ended sessions refer to stays until a slot is needed. Loaded
# and allocated only with acl_file or password_file. add() and take() allocate.
#
# The user of a client is the user name of its CONNECT, whoever has verified it; an empty one
# counts as none. An older journal does not know the user of a session.
from slotmq.constants import ANONYMOUS, NONE, PROGRAM, UNKNOWN
from slotmq.platform import ondemand
from slotmq.platform.arrays import u16
from slotmq.platform.runtime import MICROPYTHON


def make(broker):
    """Make a broker's Owners, and its Acl if there is an acl_file. ConfError: a file is bad."""
    broker.owners = Owners(broker.limits, broker.sessions)
    if broker.settings.acl_file:
        files = [broker.settings.acl_file]
        acl = ondemand.take("access.acl", 0).Acl
        if MICROPYTHON:
            pass
        else:
            from slotmq.access import rules_of_listeners_cpython

            acl, files = rules_of_listeners_cpython.chosen(broker.settings, acl)
        broker.acl = acl(broker, files)
        broker.on_reload = broker.acl.reload  # the program replaces it: config/reload.py


class Owners:
    def __init__(self, limits, sessions):
        self.sessions = sessions
        self.slots = n = limits.users
        self.names = [None] * n
        self.refs = u16(n)
        self.user = u16(limits.sessions)
        for session in range(limits.sessions):
            self.user[session] = UNKNOWN
        # 1: client id or user name has + or #, so no pattern rule counts
        self.is_odd = bytearray(limits.sessions)
        self.most = limits.client_id_bytes  # of a name
        self.refused = 0

    def add(self, name):
        """The slot of a user's name, which is added if it is missing; NONE: there is none."""
        names = self.names
        if name not in names:
            if None not in names:
                self.drop_unused()
            if None not in names or len(name) > self.most:
                self.refused += 1
                return NONE
            names[names.index(None)] = name
        return names.index(name)

    def drop_unused(self):
        """Forget the names that nothing refers to any more."""
        for session in range(self.sessions.slots):  # sessions that have ended
            if not self.sessions.used(session):
                self.free(session)
        for slot in range(self.slots):
            if not self.refs[slot]:
                self.names[slot] = None

    def take(self, broker, conn, fields):
        """The user of a client that connects: a slot, one of the numbers above, or NONE."""
        name = fields.user or fields.read(fields.user_name)
        users = broker.users
        if users and not (fields.trusted or fields.user or broker.may_connect):
            # A listener without a password_file has not checked the name.
            name = name if users.of_conn[conn] != NONE else None
        if name:
            return self.add(name)
        return PROGRAM if fields.trusted else ANONYMOUS

    def set(self, session, user, client_id):
        """From now on the session is this user's; -> was it not before?"""
        is_new = self.user[session] != user
        if user < self.slots:
            self.refs[user] += 1
        self.free(session)
        self.user[session] = user
        text = client_id + (self.name(session) or b"")
        self.is_odd[session] = 1 if b"+" in text or b"#" in text else 0
        return is_new

    def free(self, session):
        """The session has ended, or is another user's from now on."""
        user = self.user[session]
        if user < self.slots:
            self.refs[user] -= 1
        self.user[session] = UNKNOWN

    def name(self, session):
        """The name of the session's user as bytes; None: it has none."""
        user = self.user[session]
        return self.names[user] if user < self.slots else None
