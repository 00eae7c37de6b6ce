# login.py - decides about a user name and a password in CONNECT; computes passwords, one at a
# time, a slice in each turn; says who must wait because of failures, also for v5/auth.py.
#
# check() knows at once a password that was verified before, and one of the last wrong ones: that
# costs nothing and delays nobody. It refuses a client whose user has failed at its address and
# must wait; no connection is kept for a delay. Any other CONNECT waits for its password: step(),
# called once a turn meanwhile, takes the first one, computes it unless that has become needless,
# and returns it for its CONNECT to be handled again. Then check() knows the password. An unknown
# user costs the same and has the same answers. Loaded on demand; its state is in access/users.py.
# Control plane: allocates.
import hashlib

from slotmq.access.pbkdf2 import advance, begin, hmac, same
from slotmq.constants import (FAST_READ, JOB_CONN, JOB_REST, JOB_WORK, NEW, NONE, REFUSE_BUSY,
    REFUSE_LOGIN, REFUSE_USER, SALT, STORED, VERIFIED, VERIFYING)
from slotmq.platform.runtime import MICROPYTHON

if not MICROPYTHON:
    from slotmq.access import mosquitto_cpython

DEFAULTS = {"login_delay_max": 8}  # of settings that only this file reads; seconds
# The three parts of Users' table of failures: addresses, users, wrong passwords
_OF_ADDRESS, _OF_USER, _OF_WRONG = range(3)
_ROW_KEY = 8  # bytes
# Tenths of a second. A user waits 1 s after a failure, twice as long after each further one, up to
# login_delay_max; but only at addresses with failures, so that nobody is delayed by guesses from
# elsewhere. The address itself does not wait, since many clients may share it. A minute later this
# is forgotten.
_FIRST_WAIT = 5
_LONGEST_WAIT = 600
_FORGET = 600
_DOUBLINGS = 9
# Fields of a row of Users.waiting
_JOB_NAME = 3
_JOB_PASSWORD = 4
_JOB_ADDRESS = 6
_JOB_ROUND = 7


def check(broker, conn, fields):
    """0: the client may come in as far as the file says; -1: it waits; else a refusal."""
    users = broker.users
    users.of_conn[conn] = NONE
    if fields.user_name is None:
        if broker.conns.option(conn, "allow_anonymous", broker.settings.allow_anonymous):
            return 0
        fields.why = b"no user name"
        return REFUSE_USER
    name = fields.read(fields.user_name)
    password = fields.read(fields.password)
    if not password:
        fields.why = b"no password"
        users.refused += 1
        return REFUSE_LOGIN
    slot = users.find(name)
    right = _known(users, name, password)
    if right:
        users.accepted += 1
        users.of_conn[conn] = slot
        return 0
    if right is False:
        users.refused += 1
        fields.why = b"unknown user" if slot == NONE else b"wrong password"
        _add(users, broker.now, _OF_WRONG, users.seal(name, password), 0)  # the newest again
        return REFUSE_LOGIN
    fields.why = must_wait(broker, conn, name)
    if fields.why:
        return REFUSE_BUSY
    _wait_in_line(users, [conn, b"", 0, name, password, None, _address(broker, conn), 0])
    broker.conns.state[conn] = VERIFYING
    broker.turn_soon = 1
    return -1


def _wait_in_line(users, job):
    # In each round an address has one login. Who comes joins the round that is on, or the one
    # after its last.
    waiting = users.waiting
    mine = [each[_JOB_ROUND] + 1 for each in waiting if each[_JOB_ADDRESS] == job[_JOB_ADDRESS]]
    job[_JOB_ROUND] = number = max(mine) if mine else waiting[0][_JOB_ROUND] if waiting else 0
    waiting.insert(len([each for each in waiting if each[_JOB_ROUND] <= number]), job)


def _known(users, name, password):
    # True: the password was verified before; False: it is one of the last wrong ones; else None.
    digest = users.seal(name, password)
    slot = users.find(name)
    # An unknown user costs the same.
    if same(digest, users.field(slot, VERIFIED) if slot != NONE else users.secret):
        return True
    return None if _row(users, _OF_WRONG, digest) < 0 else False


def step(broker):
    """One slice of the password that is computed; -> a row of `waiting` whose CONNECT is to be
    handled again, or None."""
    users = broker.users
    job = _chosen(broker)
    if job is None:
        return None
    broker.turn_soon = 1
    conn = job[JOB_CONN]
    if job[JOB_WORK] is None and not _wait(broker, conn, job[_JOB_NAME]):
        if _known(users, job[_JOB_NAME], job[_JOB_PASSWORD]) is None:
            job[JOB_WORK] = _begin(users, job)
    if job[JOB_WORK]:
        key = advance(job[JOB_WORK])
        if key is None:
            return None
        _decide(broker, job, key)
    users.waiting.remove(job)
    broker.conns.state[conn] = NEW
    return job


def _chosen(broker):
    # The first one. What came behind its CONNECT must find a buffer if it ends in a cut packet.
    conns = broker.conns
    for job in broker.users.waiting:
        if conns.state[job[JOB_CONN]] != VERIFYING:
            continue  # it has ended
        if job[JOB_REST] <= conns.tail_bytes or conns.reassembly[FAST_READ]:
            return job
    return None


def _begin(users, job):
    users.computed += 1
    password = job[_JOB_PASSWORD]
    slot = users.find(job[_JOB_NAME])
    alike, count, salt, _ = users.made_up(job[_JOB_NAME])  # for each name, also a known one
    if slot != NONE:
        count, salt = users.iterations[slot], users.field(slot, SALT, users.salt_bytes[slot])
        alike, salt = slot, None if slot in users.foreign else salt
    if alike in users.foreign:
        return mosquitto_cpython.begin(users.foreign[alike], password, salt)
    return begin(password, salt, count)


def _decide(broker, job, key):
    users = broker.users
    name = job[_JOB_NAME]
    slot = users.find(name)
    if slot in users.foreign:
        right = same(key, users.foreign[slot].key)
    else:
        stored = hashlib.sha256(hmac(key, b"Client Key")).digest()
        right = same(stored, users.field(slot, STORED) if slot != NONE else users.secret)
    digest = users.seal(name, job[_JOB_PASSWORD])
    if right:
        users.set_verified(slot, digest)
    else:
        punish(broker, job[JOB_CONN], name)
        _add(users, broker.now, _OF_WRONG, digest, 0)


# The table of failures


def must_wait(broker, conn, name):
    """None, or, for the log, why a login of this user is refused for now; it is counted."""
    left = _wait(broker, conn, name)
    if left:
        broker.users.delayed += 1
        text = b"its password was not looked at, %d s more: failures of this user at this address"
        return text % ((left + 9) // 10)
    return None


def _wait(broker, conn, name):
    # How long the user must wait, if the address has failures; tenths of a second.
    users = broker.users
    now = broker.now
    age = _age(users, now, _row(users, _OF_ADDRESS, _address(broker, conn)))
    if age >= _FORGET:
        return 0
    return max(0, -_age(users, now, _row(users, _OF_USER, hmac(users.secret, name))))


def punish(broker, conn, name):
    """A login has failed; name: None if the client has not said one."""
    most = getattr(broker.settings, "login_delay_max", DEFAULTS["login_delay_max"]) * 10
    users = broker.users
    if most:
        _add(users, broker.now, _OF_ADDRESS, _address(broker, conn), 0)
        if name:
            _add(users, broker.now, _OF_USER, hmac(users.secret, name), most)


def _address(broker, conn):
    # The key of a client's address, without its port. Of IPv6 the first 64 bits count, since
    # whoever has one address has all of them.
    peer = broker.conns.source[conn]
    if isinstance(peer, list):
        peer = peer[0]
    host = b""
    if isinstance(peer, bytearray):  # a struct sockaddr: family, port, address
        host = bytes(peer[:2] + peer[4:])
        if len(peer) > 27 and 10 in (peer[0], peer[1]):  # and of IPv6: flow, address, scope
            host = bytes(peer[8:24])
            host = host[:8] if any(host[:10]) else host  # else of IPv4, mapped
    elif peer:
        host = _network(peer[0]).encode()
    return hmac(broker.users.secret, host)


def _network(host):
    if "." in host or ":" not in host:
        return host
    first, _, last = host.partition("::")
    groups = first.split(":")
    if len(groups) < 4:  # the gap begins here, and has what the last ones leave
        groups += ["0"] * (8 - len(groups) - len(last.split(":"))) + last.split(":")
    return ":".join(groups[:4])


def _row(users, part, key):
    # The row of a key, or -1.
    n = len(users.failure_keys) // 3
    at = users.failure_keys.find(key[:_ROW_KEY], part * n, part * n + n)
    return at // _ROW_KEY if at % _ROW_KEY == 0 else -1


def _age(users, now, row):
    # Tenths of a second since a row's wait has ended; below 0 while it runs. (What has no failure
    # is forgotten, and so is a row from before the clock's zero has moved.)
    age = now - users.failure_until[row]
    ok = row >= 0 and users.failure_counts[row] and age >= -_LONGEST_WAIT
    return age if ok else _FORGET


def _add(users, now, part, key, most):
    # A failure of a key. The oldest row makes way, but a wait that runs only for one of a user:
    # that runs, too.
    row = _row(users, part, key)
    if row < 0:
        n = len(users.failure_until) // 3
        row = max(range(part * n, part * n + n), key=lambda each: _age(users, now, each))
        if _age(users, now, row) < 0 and part != _OF_USER:
            return
        users.failure_keys[row * _ROW_KEY : row * _ROW_KEY + _ROW_KEY] = key[:_ROW_KEY]
        users.failure_counts[row] = 0
    count = users.failure_counts[row] + 1 if _age(users, now, row) < _FORGET else 1
    users.failure_counts[row] = count = min(count, _DOUBLINGS)
    users.failure_until[row] = now + min(_FIRST_WAIT << count, most)  # most: 0 but for a user
