# acl_file.py - reads an acl_file, whose syntax is mosquitto's, into the rules of access/acl.py.
#
#   topic [read|write|readwrite|deny|subscribe] FILTER   for the user above it; before the first
#                                                        `user`, for clients without a user name
#   user NAME
#   pattern [...] FILTER                                 for all clients, with %c and %u
#
# All files are checked before a rule is changed, and all errors are reported. A last line without
# a line end is an error, since a file that was cut within a line could allow more than the whole
# one. The rules of each row (access/acl.py) are counted, and then put where the row has its place.
# A reload makes them in a table beside the old one, so that it has all or none if memory ends.
# Loaded for the start and for a reload; owns nothing; allocates.
from slotmq.config.settings import ConfError
from slotmq.constants import ERROR, NOTICE
from slotmq.fast import copy, filter_ok, utf8_ok
from slotmq.platform import ondemand
from slotmq.platform.arrays import i32

_MOST_ERRORS = 20
_ACCESS = b"deny read write readwrite subscribe"  # in the order of the bits: 0 1 2 3 4
_BOM = b"\xef\xbb\xbf"


def load(acl):
    """Make the rules of a start. ConfError: a file is bad."""
    files = [_Rules(acl, path) for path in acl.files]
    check(acl, files)
    _make(acl, acl, files)


def _replace(acl):
    # ConfError: a file is bad; MemoryError; then nothing has changed.
    files = [_Rules(acl, path) for path in acl.files]
    count, size = check(acl, files)
    owners = acl.owners
    owners.drop_unused()  # so that nothing but add() changes them now
    kept = list(owners.names), owners.refs[:]
    try:
        made = _Table(len(acl.first), count, size)
        _make(made, acl, files)
    except MemoryError:
        for slot in range(owners.slots):
            owners.names[slot] = kept[0][slot]
            owners.refs[slot] = kept[1][slot]
        raise
    # Nothing is allocated from here on.
    acl.count = made.count
    copy(acl.text, 0, made.text, 0, size)
    copy(acl.access, 0, made.access, 0, count)
    for rule in range(count):
        acl.end[rule] = made.end[rule]
    for row in range(len(acl.first)):
        acl.first[row] = made.first[row]


def reload(acl):
    """Replace the rules while the broker runs; all sessions are checked against the new ones."""
    broker = acl.broker
    try:
        recheck = ondemand.take("access.recheck_sessions", broker.now)  # before anything changes
        _replace(acl)
    except (ConfError, MemoryError) as error:
        if broker._log_mask & ERROR:
            broker.log(ERROR, "The old rules stay: %s" % (str(error) or "too little memory"))
        return
    broker.subscriptions.forget_routes()
    recheck.every_session(broker)
    try:
        if broker._log_mask & NOTICE:
            broker.log(NOTICE, "Read %s: %d rules." % (", ".join(acl.files), acl.count))
    except MemoryError:
        pass  # they were replaced


def check(acl, files):
    """How many rules there are, and their bytes. ConfError, with all that is wrong."""
    errors = []
    names = []
    count = size = 0
    for rules in files:
        for user, _, text in rules.rules():
            count += 1
            size += len(text)
            if user and user not in names:
                names.append(user)
        rules.has_end()
        errors += rules.errors
    limits = acl.broker.limits
    for session in range(limits.sessions):  # of clients that no file names
        name = acl.owners.name(session) if acl.broker.sessions.used(session) else None
        if name and name not in names:
            names.append(name)
    for limit, n, most in (
        ("acl_rules", count, acl.slots),
        ("acl_bytes", size, limits.acl_bytes),
        ("users", len(names), limits.users),
    ):
        if n > most:
            what = "%s: it takes limit %s %d, not %d"
            errors.append(what % (", ".join(acl.files), limit, n, most))
    if errors:
        raise ConfError("\n".join(errors))
    return count, size


class _Table:
    """What access/acl.py has of rules."""

    def __init__(self, rows, count, size):
        self.first = i32(rows)
        self.access = bytearray(count)
        self.end = i32(count)
        self.text = bytearray(size)


def _make(table, acl, files):
    owners = acl.owners
    rows = acl.rows
    first = acl.first  # of the old rules
    for row in range(len(first) - 1):
        if first[row] < first[row + 1] and row % rows < owners.slots:
            owners.refs[row % rows] -= 1
    first = table.first
    # Of each row and of its denials and its other rules: how many there are, and their bytes;
    # then where the next one goes
    rules = [0] * (2 * (len(first) - 1))
    texts = list(rules)
    for bucket, _, text in _placed(acl, files):
        row = (bucket >> 1) % rows
        if row < owners.slots and not rules[bucket] | rules[bucket ^ 1]:
            owners.refs[row] += 1  # at once: else the slot could be taken for another name
        rules[bucket] += 1
        texts[bucket] += len(text)
    count = size = 0
    for bucket in range(len(rules)):
        if bucket & 1 == 0:
            first[bucket >> 1] = count
        rules[bucket], count = count, count + rules[bucket]
        texts[bucket], size = size, size + texts[bucket]
    table.count = first[-1] = count
    for bucket, access, text in _placed(acl, files):
        at = texts[bucket]
        texts[bucket] = end = at + len(text)
        table.text[at:end] = text
        table.access[rules[bucket]] = access
        table.end[rules[bucket]] = end
        rules[bucket] += 1


def _placed(acl, files):
    # (twice the row, + 1 if it allows; access; filter) of each rule
    base = 0
    for rules in files:
        for user, access, text in rules.rules():
            row = acl.rows - (1 if user is False else 2)
            if user:
                row = acl.owners.add(user)
            yield 2 * (base + row) + (access > 0), access, text
        base += acl.rows


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

    def has_end(self):
        """Note an error if the last line has none."""
        last = self.data[self.data.rfind(b"\n") + 1 :].strip()
        if last and last[:1] != b"#":
            self.fail(self.data.count(b"\n") + 1, "a line end: is the file cut?")

    def fail(self, number, expected):
        if len(self.errors) < _MOST_ERRORS:
            self.errors.append("%s:%d: expected %s" % (self.path, number, expected))

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
        if n > most:
            self.fail(number, "a topic filter of at most %d bytes" % most)
            return None
        if access >= 0 and len(words) < 2:
            n = 0
        if not n or not utf8_ok(text, 0, n, 0) or not filter_ok(text, 0, n):
            self.fail(number, "a topic filter")
            return None
        return (3 if access < 0 else access), text
