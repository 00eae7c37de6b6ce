# login.py - decides about a user name and a password in CONNECT; computes the passwords of those
# that wait, one at a time, a slice in each turn; makes whoever guesses wait longer each time.
#
# check() finds a password that was verified before at once. Any other one waits, and step() is
# called once a turn while somebody waits: it takes the first whose address and user need not wait
# because of failures, computes its password, and returns it for its CONNECT to be handled again.
# Then check() finds it verified, or marked as failed. An unknown user costs the same slices.
# Loaded on demand; its state is in access/users.py. Control plane: allocates.
import hashlib

from slotmq.access.pbkdf2 import advance, begin, hmac, same
from slotmq.platform import ondemand
from slotmq.platform.runtime import MICROPYTHON, const

if not MICROPYTHON:
    from slotmq.access import mosquitto_cpython

_NONE = const(0xFFFF)
_NEW = const(1)
_VERIFYING = const(6)
_NOTICE = const(4)
_SALT = const(0)
_STORED = const(1)
_VERIFIED = const(3)
_FAILURE_KEY = const(8)
_FAILURES = const(16)
_OF_ADDRESS = const(0)  # first rows of the two halves
_OF_USER = const(8)
DEFAULTS = {"login_delay_max": 8}  # of settings that only this file reads; seconds
# Tenths of a second. After a failure its address waits 1 s, since other clients may share it. Its
# user waits 1 s, twice as long after each further failure, up to login_delay_max. A minute later
# this is forgotten.
_FIRST_WAIT = const(5)
_ADDRESS_WAIT = const(10)
_LONGEST_WAIT = const(600)
_FORGET = const(600)
_DOUBLINGS = const(7)
# Return codes of CONNACK
_BAD_LOGIN = const(4)
_NOT_AUTHORIZED = const(5)
# Fields of a row of Users.waiting
_JOB_CONN = const(0)
_JOB_REST = const(2)
_JOB_NAME = const(3)
_JOB_PASSWORD = const(4)
_JOB_ADDRESS = const(5)
_JOB_USER = const(6)
_JOB_WORK = const(7)


def check(broker, conn, fields):
    """0: the client may come in as far as the file says; -1: it waits; else a return code."""
    users = broker.users
    users.of_conn[conn] = _NONE
    if fields.user_name is None:
        if broker.settings.allow_anonymous:
            return 0
        fields.why = b"no user name"
        return _NOT_AUTHORIZED
    name = fields.read(fields.user_name)
    password = fields.read(fields.password)
    slot = users.find(name)
    if not password:
        fields.why = b"no password"
        users.refused += 1
        return _BAD_LOGIN
    digest = users.seal(name, password)
    if slot != _NONE and same(digest, users.field(slot, _VERIFIED)):
        users.accepted += 1
        users.of_conn[conn] = slot
        return 0
    if users.failed == conn:
        users.failed = -1
        fields.why = b"unknown user" if slot == _NONE else b"wrong password"
        return _BAD_LOGIN
    _wait(broker, conn, name, password)
    return -1


def must_wait(broker, conn):
    """A CONNECT with an authentication method: True if its address must wait; it does then."""
    users = broker.users
    if not _delay(users, broker.now, _OF_ADDRESS, address(broker, conn)):
        return False
    _wait(broker, conn, b"", None)
    return True


def _wait(broker, conn, name, password):
    users = broker.users
    host, user = address(broker, conn), hmac(users.secret, name)[:_FAILURE_KEY]
    now = broker.now
    delay = max(_delay(users, now, _OF_ADDRESS, host), _delay(users, now, _OF_USER, user))
    if delay:
        users.delayed += 1
        if broker.log_mask & _NOTICE:
            ondemand.log_event(broker, "waits", conn, (name, delay))
    users.waiting.append([conn, b"", 0, name, password, host, user, None])
    broker.conns.state[conn] = _VERIFYING
    broker.turn_soon = 1


def address(broker, conn):
    """The key of a client's address, without its port."""
    peer = broker.conns.source[conn]
    if isinstance(peer, list):
        peer = peer[0]
    host = b""
    if isinstance(peer, bytearray):  # a struct sockaddr: family, port, address
        host = bytes(peer[:2] + peer[4:])
    elif peer:
        host = peer[0].encode()
    return hmac(broker.users.secret, host)[:_FAILURE_KEY]


def step(broker):
    """One slice of the password that is computed; -> a row of `waiting` whose CONNECT is to be
    handled again, or None."""
    users = broker.users
    conns = broker.conns
    job = _chosen(broker)
    if job is None:
        return None
    broker.turn_soon = 1
    conn = job[_JOB_CONN]
    if job[_JOB_WORK] is None and _must_compute(users, job):
        conns.opened[conn] = broker.now  # connect_timeout begins when its turn comes
        job[_JOB_WORK] = _begin(users, job)
    if job[_JOB_WORK]:
        key = advance(job[_JOB_WORK])
        if key is None:
            return None
        _decide(broker, job, key)
    users.waiting.remove(job)
    for other in users.waiting:
        conns.opened[other[_JOB_CONN]] = broker.now
    conns.state[conn] = _NEW
    return job


def _chosen(broker):
    # The one that is being computed; else the first that need not wait, of users without a failure
    # before others, so that a client with an old password does not delay the rest of its address.
    # What came behind its CONNECT must find a buffer if it ends in a cut packet.
    users = broker.users
    now = broker.now
    conns = broker.conns
    first = later = None
    for job in users.waiting:
        if conns.state[job[_JOB_CONN]] != _VERIFYING:
            continue  # it has ended
        if job[_JOB_REST] > conns.tail_bytes and not conns.reassembly[3]:
            continue
        if job[_JOB_WORK]:
            return job
        if _delay(users, now, _OF_ADDRESS, job[_JOB_ADDRESS]):
            continue
        row = _row(users, _OF_USER, job[_JOB_USER])
        if row < 0 or not users.failure_counts[row]:
            first = first or job
        elif not _delay(users, now, _OF_USER, job[_JOB_USER]):
            later = later or job
    return first or later


def _must_compute(users, job):
    # Not without a password, nor if another client of this user has come in since.
    name, password = job[_JOB_NAME], job[_JOB_PASSWORD]
    if password is None:
        return False
    slot = users.find(name)
    return slot == _NONE or not same(users.seal(name, password), users.field(slot, _VERIFIED))


def _begin(users, job):
    users.computed += 1
    password = job[_JOB_PASSWORD]
    slot = users.find(job[_JOB_NAME])
    salt = None
    if slot == _NONE:
        slot, count, salt, _ = users.made_up(job[_JOB_NAME])
    if slot in users.foreign:
        return mosquitto_cpython.begin(users.foreign[slot], password, salt)
    if salt is None:
        count, salt = users.iterations[slot], users.field(slot, _SALT, users.salt_bytes[slot])
    return begin(password, salt, count)


def _decide(broker, job, key):
    users = broker.users
    name = job[_JOB_NAME]
    slot = users.find(name)
    if slot in users.foreign:
        right = same(key, users.foreign[slot].key)
    else:
        stored = hashlib.sha256(hmac(key, b"Client Key")).digest()
        right = same(stored, users.field(slot, _STORED) if slot != _NONE else users.secret)
    if right:
        users.set_verified(slot, users.seal(name, job[_JOB_PASSWORD]))
        _forgive(users, job[_JOB_USER])
    else:
        users.failed = job[_JOB_CONN]
        users.refused += 1
        _punish(broker, _OF_ADDRESS, job[_JOB_ADDRESS])
        _punish(broker, _OF_USER, job[_JOB_USER])


def proved(broker, conn, name):
    """A client has logged in by SCRAM."""
    users = broker.users
    users.of_conn[conn] = users.find(name)
    users.accepted += 1


def failed(broker, conn, name):
    """A login by SCRAM has failed; name: None if it has not said one."""
    users = broker.users
    users.refused += 1
    _punish(broker, _OF_ADDRESS, address(broker, conn))
    if name:
        _punish(broker, _OF_USER, hmac(users.secret, name)[:_FAILURE_KEY])


# The table of failures


def _row(users, first, key):
    # The row of a key, or -1.
    for row in range(first, first + (_FAILURES >> 1)):
        if users.failure_keys[row * _FAILURE_KEY : row * _FAILURE_KEY + _FAILURE_KEY] == key:
            return row
    return -1


def _delay(users, now, first, key):
    # How long a login must wait. (The clock's zero may have moved: then a row is out of range.)
    row = _row(users, first, key)
    left = users.failure_until[row] - now if row >= 0 else 0
    return left if 0 < left <= _LONGEST_WAIT else 0


def _punish(broker, first, key):
    most = getattr(broker.settings, "login_delay_max", DEFAULTS["login_delay_max"])
    users = broker.users
    now = broker.now
    until = users.failure_until
    row = _row(users, first, key)
    if row < 0:
        row = min(range(first, first + (_FAILURES >> 1)), key=lambda each: until[each])
        users.failure_keys[row * _FAILURE_KEY : row * _FAILURE_KEY + _FAILURE_KEY] = key
        users.failure_counts[row] = 0
    since = now - until[row]
    count = users.failure_counts[row] if -_LONGEST_WAIT <= since < _FORGET else 0
    users.failure_counts[row] = count = min(count + 1, _DOUBLINGS)
    wait = _ADDRESS_WAIT if first == _OF_ADDRESS else _FIRST_WAIT << count
    until[row] = now + min(wait, most * 10)


def _forgive(users, key):
    row = _row(users, _OF_USER, key)
    if row >= 0:
        users.failure_counts[row] = 0
        users.failure_until[row] = -_FORGET
