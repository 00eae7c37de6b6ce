# rules_of_listeners_cpython.py - an Acl with several lists of rules, since with
# per_listener_settings each listener has the rules of its own acl_file, or none: then everything
# is allowed there, as in mosquitto.
#
# All lists are in the one table of access/acl.py, one after the other; `base` is set before it is
# searched. Owns the column `of`: the list of the listener that a session's client came to last.
# After a restart nobody knows it until the client comes: its session is treated like one without a
# recorded user, and its will goes out if each list allows it. A client of the program, if it has a
# user name, has the first list. On a board all listeners have the same rules. Does not allocate
# after construction.
from slotmq.access.acl import Acl
from slotmq.constants import NONE

_UNKNOWN_LIST = 0xFF
_OPEN = 0xFE  # its listener has no rules
_MOST_LISTS = 0xFD


def chosen(settings, one):
    """The class to use, and the files. one: the class where all listeners have the same file."""
    paths = [each[3].get("acl_file", settings.acl_file) for each in settings.listeners]
    files = files_of(settings)
    return (RulesOfListeners if None in paths or len(files) > 1 else one), files


def files_of(settings):
    """The acl_files, without those that are named twice."""
    paths = [each[3].get("acl_file", settings.acl_file) for each in settings.listeners]
    return [path for path in dict.fromkeys([settings.acl_file, *paths]) if path][:_MOST_LISTS]


class RulesOfListeners(Acl):
    def __init__(self, broker, files):
        self.of = bytearray([_UNKNOWN_LIST]) * broker.limits.sessions
        self.set_owner = broker.owners.set
        broker.owners.set = self.set
        super().__init__(broker, files)

    def set(self, session, user, client_id):
        """Owners.set(), for a client that comes, or from the journal."""
        conn = self.broker.sessions.conn[session]
        number = _UNKNOWN_LIST
        if conn != NONE:
            path = self.broker.conns.option(conn, "acl_file", self.files[0])
            number = self.files.index(path) if path else _OPEN
        is_new = self.of[session] != number
        self.of[session] = number
        return self.set_owner(session, user, client_id) or is_new

    def reads(self, session, buf, off, n):
        return self.of[session] == _UNKNOWN_LIST or super().reads(session, buf, off, n)

    def allows(self, session, buf, off, n, access):
        for base in self._bases(session):
            self.base = base
            if not super().allows(session, buf, off, n, access):
                return False
        return True

    def may_subscribe(self, session, topic_filter):
        for base in self._bases(session):
            self.base = base
            if not super().may_subscribe(session, topic_filter):
                return False
        return True

    def _bases(self, session):
        # Where the lists begin that must allow what the session does
        number = self.of[session]
        if number == _OPEN:
            return ()
        every = range(0, len(self.files) * self.rows, self.rows)
        return every if number == _UNKNOWN_LIST else every[number : number + 1]
