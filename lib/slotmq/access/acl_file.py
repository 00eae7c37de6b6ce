# acl_file.py - reads an acl_file, whose syntax is mosquitto's, into the rules of access/acl.py.
#
#   topic [read|write|readwrite|deny|subscribe] FILTER   for the user above it; before the first
#                                                        `user`, for clients without a user name
#   user NAME
#   pattern [...] FILTER                                 for all clients, with %c and %u
#
# The whole file is checked before a rule is changed, and all its errors are reported. A last line
# without a line end is an error, since a file that was cut within a line could allow more than the
# whole one. Loaded for the start and for a reload; owns nothing; allocates.
from slotmq.access import recheck_sessions
from slotmq.config.settings import ConfError
from slotmq.fast import filter_ok, utf8_ok
from slotmq.platform.runtime import const

_ANONYMOUS = const(0xFFFD)
_EVERYBODY = const(0xFFFB)
_MOST_ERRORS = const(20)
_ERROR = const(1)
_NOTICE = const(4)
_ACCESS = b"deny read write readwrite subscribe"  # in the order of the bits: 0 1 2 3 4
_BOM = b"\xef\xbb\xbf"


def load(acl, path):
    """Replace the rules by those of the file. ConfError: the file is bad, and nothing changed."""
    rules = _Rules(acl, path)
    rules.check()
    rules.put()


def reload(acl):
    """The same while the broker runs; all sessions are checked against the new rules."""
    broker = acl.broker
    path = broker.settings.acl_file
    try:
        load(acl, path)
    except ConfError as error:
        if broker.log_mask & _ERROR:
            broker.log(_ERROR, "The old rules stay: %s" % error)
        return
    broker.subscriptions.forget_routes()
    recheck_sessions.every_session(broker)
    if broker.log_mask & _NOTICE:
        broker.log(_NOTICE, "Read %s: %d rules." % (path, acl.count))


class _Rules:
    """The lines of a file."""

    def __init__(self, acl, path):
        self.acl = acl
        self.path = path
        self.errors = []
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            raise ConfError("%s: expected a file that can be read (%s)" % (path, error))
        self.data = data[3:] if data[:3] == _BOM else data

    def lines(self):
        """Each line without blanks at its ends: one at a time, since a small heap has no space for
        all."""
        at = 0
        while at <= len(self.data):
            end = self.data.find(b"\n", at)
            end = end if end >= 0 else len(self.data)
            yield self.data[at:end].strip()
            at = end + 1

    def check(self):
        """ConfError, with all that is wrong."""
        acl = self.acl
        last = self.data[self.data.rfind(b"\n") + 1 :].strip()
        if last and last[:1] != b"#":
            self.fail(self.data.count(b"\n") + 1, "a line end: is the file cut?")
        count = size = 0
        names = []
        for user, _, text in self.rules():
            count += 1
            size += len(text)
            if user and user not in names:
                names.append(user)
        limits = acl.broker.limits
        self.fits("acl_rules", count, acl.slots)
        self.fits("acl_bytes", size, limits.acl_bytes)
        for session in range(limits.sessions):  # of clients that the file does not name
            name = acl.owners.name(session) if acl.broker.sessions.used(session) else None
            if name and name not in names:
                names.append(name)
        self.fits("users", len(names), limits.users)
        if self.errors:
            raise ConfError("\n".join(self.errors))

    def fits(self, limit, n, most):
        if n > most:
            self.errors.append("%s: it takes limit %s %d, not %d" % (self.path, limit, n, most))

    def fail(self, number, expected):
        if len(self.errors) < _MOST_ERRORS:
            self.errors.append("%s:%d: expected %s" % (self.path, number, expected))

    def put(self):
        """Fill the table: rules of users before patterns, denials before what is allowed."""
        acl = self.acl
        owners = acl.owners
        for i in range(acl.count):
            if acl.user[i] < owners.slots:
                owners.refs[acl.user[i]] -= 1
        acl.count = at = 0
        for group in range(4):
            for user, access, text in self.rules():
                if group != (2 if user is False else 0) + (access > 0):
                    continue
                acl.text[at : at + len(text)] = text
                at += len(text)
                slot = _EVERYBODY if user is False else _ANONYMOUS
                if user:
                    slot = owners.add(user)
                    owners.refs[slot] += 1
                acl.user[acl.count] = slot
                acl.access[acl.count] = access
                acl.end[acl.count] = at
                acl.count += 1

    def rules(self):
        """(user's name, None for clients without one, False for a pattern; access; filter)."""
        user = None
        number = 0
        for line in self.lines():
            number += 1
            if not line or line[0] == 35:
                continue
            words = line.split(None, 1)
            rest = words[1] if len(words) > 1 else b""
            if words[0] == b"user":
                user = rest
                if (
                    not rest
                    or len(rest) > self.acl.owners.most
                    or not utf8_ok(rest, 0, len(rest), 0)
                ):
                    self.fail(number, "a user name of 1 to %d bytes" % self.acl.owners.most)
            elif words[0] in (b"topic", b"pattern"):
                rule = self.rule(number, rest)
                if rule:
                    yield (False if words[0] == b"pattern" else user,) + rule
            else:
                self.fail(number, "topic, user or pattern")

    def rule(self, number, rest):
        # -> (access, filter), or None if the line is wrong.
        kinds = _ACCESS.split()
        words = rest.split(None, 1)
        access = kinds.index(words[0]) if words and words[0] in kinds else -1
        if access < 0 and len(words) > 1:
            self.fail(number, "read, write, readwrite, deny or subscribe")
            return None
        text = words[-1] if words else b""
        n = len(text)
        most = self.acl.broker.limits.topic_bytes
        if access >= 0 and len(words) < 2 or n > most:
            n = 0
        if not n or not utf8_ok(text, 0, n, 0) or not filter_ok(text, 0, n):
            self.fail(number, "a topic filter of at most %d bytes" % most)
            return None
        return (3 if access < 0 else access), text
