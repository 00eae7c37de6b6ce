# users_file.py - reads password_file into the table of access/users.py, at the start and for a
# reload.
#
# A line is empty, a comment (#), or a user:
#     name:iterations:salt:StoredKey:ServerKey   base64 from the salt (8 to 32 bytes) on; `slotmq
#                                                passwd` writes it. A name is UTF-8 without control
#                                                characters, which SASLprep does not change
#     name:$...                                  of mosquitto_passwd; on a computer only
# The comment `#salts:` with 32 bytes in base64, which `slotmq passwd` writes too, is the secret
# that salts of unknown names are made from: they stay when the users change. Without it the secret
# is made from all keys.
# The whole file is read and checked, and all is made, before the table changes: it has all or none
# if memory ends. Loaded on demand; owns nothing; allocates.
import binascii

from slotmq.access.pbkdf2 import hmac
from slotmq.constants import (CONNECTED, FIVE, JOB_WORK, KEY, NONE, NOTICE, UNAUTHORIZED,
    USER_BYTES, WARNING)
from slotmq.fast import copy
from slotmq.platform.runtime import MICROPYTHON

_OURS = "name:iterations (4096 or more):salt:StoredKey:ServerKey, as `slotmq passwd` writes it"


def load(users, path):
    """Read the users. ValueError, with file and line: a line is wrong; OSError: no such file."""
    foreign = None
    if not MICROPYTHON:
        from slotmq.access.mosquitto_cpython import usable as foreign
    rows = read(path, users.slots, foreign, users.most)
    return _replace(users, rows, _salts(path))


def _salts(path):
    with open(path, "rb") as file:
        for line in file:
            if line[:7] == b"#salts:":
                try:
                    return decoded(line[7:].strip())
                except ValueError:
                    pass
    return None


def read(path, most, foreign=None, longest=65535):
    """The users of a file: [(name, iterations, salt, StoredKey, ServerKey) or (name, foreign(what
    follows it))]. most: how many there may be; foreign(text): reads a line of mosquitto_passwd;
    longest: bytes of a name."""
    rows = []
    names = set()
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if number == 1 and line[:3] == b"\xef\xbb\xbf":
                line = line[3:]  # a byte order mark
            line = line.strip()
            if not line or line[:1] == b"#":
                continue
            try:
                row = _user(line, foreign)
                if row[0] in names:
                    raise ValueError("a new name")
                if len(row[0]) > longest:
                    text = "a name of at most %d bytes, see limit client_id_bytes"
                    raise ValueError(text % longest)
                if len(rows) == most:
                    raise ValueError("at most %d users, see limit users" % most)
            except ValueError as error:
                raise ValueError("%s:%d: expected %s" % (path, number, error))
            names.add(row[0])
            rows.append(row)
    return rows


def _user(line, foreign):
    name, _, rest = line.partition(b":")
    if rest[:1] == b"$" and name:
        if foreign is None:
            raise ValueError(_OURS + "; lines of mosquitto_passwd work on a computer only")
        return name, foreign(rest)
    try:
        if _prepared(name):
            return (name,) + _keys(*rest.split(b":"))
    except (TypeError, ValueError):  # another number of fields, no number, no base64
        pass
    raise ValueError(_OURS)


def _prepared(name):
    # No control character, no byte order mark; ValueError: no UTF-8.
    text = str(name, "utf-8")
    return text and min(name) > 31 and b"\x7f" not in name and "\ufeff" not in text


def _keys(count, salt, stored, server):
    iterations = int(count)
    # RFC 7677, 4; and a column has 30 bits
    if not 4096 <= iterations <= 0x3FFFFFFF or str(iterations).encode() != count:
        raise ValueError
    return iterations, decoded(salt, 8), decoded(stored), decoded(server)


def decoded(text, least=KEY):
    """The bytes of a text in base64; ValueError."""
    raw = binascii.a2b_base64(text)
    # a2b takes what is no base64
    if binascii.b2a_base64(raw)[:-1] != text or not least <= len(raw) <= KEY:
        raise ValueError
    return raw


def _replace(users, rows, salts):
    # -> the slots of users that are gone or have another password. MemoryError: nothing changed.
    names = {row[0] for row in rows}
    changed = [slot for name, slot in users.slot_of.items() if name not in names]
    slot_of = {name: slot for name, slot in users.slot_of.items() if name in names}
    used = set(slot_of.values())
    free = [slot for slot in range(users.slots) if slot not in used]
    foreign = {}
    new = []  # slot, row, ...
    nothing = bytes(USER_BYTES)
    for row in rows:
        slot = slot_of.get(row[0], NONE)
        if slot == NONE:
            slot = slot_of[row[0]] = free.pop(0)
            new += (slot, row)
        elif _differs(users, slot, row):
            changed.append(slot)
            new += (slot, row)
        if len(row) == 2:
            foreign[slot] = row[1]
    keys = sorted([row[3] + row[4] for row in rows if len(row) > 2])
    salts = salts or users.salts
    salts = salts or (hmac(b"", b"".join(keys)) if keys else users.secret)
    usual = _usual(slot_of, rows)
    # Nothing is allocated from here on.
    for i in range(0, len(new), 2):
        _put(users, new[i], new[i + 1], nothing)
    users.slot_of = slot_of
    users.foreign = foreign
    users.salts = salts
    users.usual = usual
    return changed


def _usual(slot_of, rows):
    # The slot of a user as most are: they have the same kind of line, iterations, length of salt.
    kinds = {}
    for row in sorted(rows, key=lambda row: row[0]):
        kind = row[1].kinship() if len(row) == 2 else (row[1], len(row[2]))
        kinds.setdefault(kind, []).append(row[0])
    names = sorted(kinds.values(), key=lambda names: (-len(names), names[0]))
    return slot_of[names[0][0]] if names else NONE


def _differs(users, slot, row):
    if len(row) == 2 or slot in users.foreign:
        return users.foreign.get(slot) != row[1]
    salt = users.field(slot, 0, users.salt_bytes[slot])
    return (users.iterations[slot], salt, users.field(slot, 1), users.field(slot, 2)) != row[1:]


def _put(users, slot, row, nothing):
    at = slot * USER_BYTES
    copy(users.keys, at, nothing, 0, USER_BYTES)  # no password is verified any more
    users.iterations[slot] = 4096
    users.salt_bytes[slot] = 16
    if len(row) > 2:
        users.iterations[slot] = row[1]
        users.salt_bytes[slot] = len(row[2])
        copy(users.keys, at, row[2], 0, len(row[2]))
        copy(users.keys, at + KEY, row[3], 0, KEY)
        copy(users.keys, at + 2 * KEY, row[4], 0, KEY)


def reload(broker, log):
    """Read the file again: end connections whose user is gone or has another password, and those
    of anonymous clients if they may not come in any more. A wrong file changes nothing, nor does a
    MemoryError."""
    users = broker.users
    path = broker.settings.password_file
    five = broker.five
    by_hook = five.exchanges if five and five.hook(broker) is not five.scram else ()
    try:
        changed = load(users, path)
    except (OSError, ValueError) as error:
        log(WARNING, "The users stay as they are: %s." % error)
        return
    # A password that was wrong may be right now; what is being computed begins again.
    for i in range(len(users.failure_keys)):
        users.failure_keys[i] = 0
    for job in users.waiting:
        job[JOB_WORK] = None
    conns = broker.conns
    ended = 0
    for conn in range(conns.top):
        if conns.state[conn] not in (CONNECTED, FIVE) or conns.source[conn] is None:
            continue
        slot = users.of_conn[conn]
        may_stay = conns.option(conn, "allow_anonymous", broker.settings.allow_anonymous)
        # Of a listener without users, a hook let them in.
        may_stay = may_stay or not conns.option(conn, "password_file", 1)
        anonymous = slot == NONE and conn not in by_hook
        if slot in changed or anonymous and not may_stay:
            broker.end(conn, UNAUTHORIZED)
            ended += 1
    try:
        what = path, users.count(), ended
        log(NOTICE, "Read %s: %d users; %d clients were disconnected." % what)
    except MemoryError:
        pass  # they were taken
