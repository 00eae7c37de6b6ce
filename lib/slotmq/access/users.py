# users.py - the users of password_file, for passwords in CONNECT and for SCRAM; and the state of
# the logins under way.
#
# A slot is a user, `limit users` of them. Its row in `keys` has four fields of 32 bytes:
#     salt | StoredKey | ServerKey | verified
# The first three are those of SCRAM [RFC 5802, 3]; access/users_file.py reads them. `verified` is
# SHA-256(secret of the process, name, 0, password) of the password that was computed last and was
# right, so that a reconnect costs one SHA-256 instead of PBKDF2. `foreign` has, for users with a
# line of mosquitto_passwd, what access/mosquitto_cpython.py made of it.
#
# A CONNECT whose password must be computed waits here with all bytes that came behind it; its
# connection is not read meanwhile. A row of `waiting`, at most one for each connection:
#     [connection, CONNECT and what follows, length of what follows, user name, password,
#     work of access/pbkdf2.py, key of its address, round]
# A third of the rows of the table of failures are for addresses, a third for users, a third for
# wrong passwords; the oldest makes way. access/login.py does all this.
#
# There is no Users without password_file. Allocates at the start, for CONNECT and for a reload.
import hashlib
import os

from slotmq.access import pbkdf2
from slotmq.constants import (BYTES_IN, JOB_CONN, JOB_REST, KEY, NONE, PACKETS_IN, USER_BYTES,
    VERIFIED)
from slotmq.platform import heap, ondemand
from slotmq.platform.arrays import i32, u16

_FAILURES = 8  # rows of each third of the table, at least
_JOB_DATA = 1


class Users:
    def __init__(self, limits, path):
        n = limits.users
        self.slots = n
        self.most = limits.client_id_bytes  # of a name, as in access/owners.py
        self.slot_of = {}  # name: slot
        self.iterations = i32(n)
        self.salt_bytes = bytearray(n)
        self.keys = bytearray(n * USER_BYTES)
        self.foreign = {}  # slot: a user of mosquitto_passwd
        self.secret = os.urandom(KEY)
        self.salts = b""  # the file's secret, or one of its keys, so that it is the same after a
        # restart; a reload leaves it: users keep their salts then, too
        self.usual = NONE  # the slot whose line costs what most of them cost
        self.of_conn = u16(limits.connections + 1, NONE)  # the user of each connection
        self.waiting = []
        self.logged = [0, 0]  # for status/log_reasons.py: since when, how many lines about logins
        n = 3 * max(_FAILURES, limits.connections)
        self.failure_keys = bytearray(8 * n)  # HMAC(secret, what it is), its first 8 bytes
        self.failure_counts = bytearray(n)
        self.failure_until = i32(n)  # tenths of a second
        # Counters: logins with the right password, with a wrong one, those that were refused
        # because of earlier failures, passwords that were computed
        self.accepted = self.refused = self.delayed = self.computed = 0
        ondemand.take("access.users_file", 0).load(self, path)

    def login(self, broker):
        """The module that decides."""
        return ondemand.take("access.login", broker.now)

    def slice(self, broker, receive):
        """Compute a slice of a password. After the last one its CONNECT is received again."""
        with heap.lifted:
            job = self.login(broker).step(broker) if self.waiting else None
        if job:
            receive(broker, job[JOB_CONN], job[_JOB_DATA], 0, len(job[_JOB_DATA]))

    def count(self):
        return len(self.slot_of)

    def find(self, name):
        """The user's slot, or NONE."""
        return self.slot_of.get(name, NONE)

    def field(self, slot, k, size=KEY):
        at = slot * USER_BYTES + k * KEY
        return bytes(self.keys[at : at + size])

    def seal(self, name, password):
        """What `verified` has for this password."""
        return hashlib.sha256(self.secret + name + b"\0" + password).digest()

    def set_verified(self, slot, digest):
        at = slot * USER_BYTES + VERIFIED * KEY
        self.keys[at : at + KEY] = digest

    def made_up(self, name):
        """For an unknown name: (slot of a usual user or NONE, iterations, salt, a secret). For
        one name always the same, and as most users have it: a name that nobody has must not cost
        what the one user with many iterations costs."""
        made = pbkdf2.hmac(self.salts, name)
        slot = self.usual
        if slot == NONE:
            return NONE, 4096, made[:16], self.secret
        return slot, self.iterations[slot], made[: self.salt_bytes[slot]], self.secret

    def hold(self, conn, buf, at, end, stats, n):
        """Store bytes of a connection whose CONNECT waits. n: how many of them it has; it will be
        handled, and counted, again."""
        if n:
            stats[PACKETS_IN] -= 1
            stats[BYTES_IN] -= n
        with heap.lifted:
            for job in self.waiting:
                if job[JOB_CONN] == conn:
                    job[_JOB_DATA] += bytes(buf[at:end])
                    job[JOB_REST] += end - at - n

    def forget(self, conn):
        """The connection has ended."""
        self.of_conn[conn] = NONE
        for job in self.waiting:
            if job[JOB_CONN] == conn:
                self.waiting.remove(job)
                return
