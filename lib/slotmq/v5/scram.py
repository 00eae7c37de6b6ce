# scram.py - SCRAM-SHA-256, for the enhanced authentication of MQTT 5.0 [4.12; RFC 5802, 7677].
#
# Owns the exchanges under way, by `who` (the connection); the users are those of access/users.py.
# If `most` are under way, another one is refused as "server busy" and counted in
# `refused`; the broker's `most` is its number of connections.
#     exchanges  who -> (name, StoredKey, ServerKey, how the final message has to begin,
#                what is signed before it); at most 2 KB each
# Names are ASCII without blanks, which SASLprep does not change. An unknown name gets the same
# exchange and the same refusal as a wrong password. Allocates: called at CONNECT and AUTH only.
import binascii
import hashlib
import os

from slotmq.access.pbkdf2 import hmac, same, xor
from slotmq.platform.runtime import const

_KEY = const(32)  # bytes of SHA-256's digest
_NONE = const(0xFFFF)
_SALT = const(0)  # fields of a user
_STORED = const(1)
_SERVER = const(2)
_DATA_MAX = const(512)  # bytes of a client's message
_CONTINUE_AUTHENTICATION = const(0x18)
_UNAUTHORIZED = const(0x87)
_SERVER_BUSY = const(0x89)
_BAD_AUTHENTICATION_METHOD = const(0x8C)


class Scram:
    def __init__(self, users, most=16):
        self.user = None  # the name that the last auth() accepted
        self.last = None  # the name that it was asked about
        self.most = most
        self.refused = 0
        self.users = users
        self.exchanges = {}

    def nonce(self):
        return _base64(os.urandom(18))

    def auth(self, who, method, data):
        """A client's message -> (reason code, answer or None); any code but 0x18 is the end."""
        self.user = self.last = None
        exchange = self.exchanges.pop(who, None)
        if method != b"SCRAM-SHA-256":
            return _BAD_AUTHENTICATION_METHOD, None
        try:
            _must(data and len(data) <= _DATA_MAX)
            return self._final(data, *exchange) if exchange else self._first(who, data)
        except ValueError:
            return _UNAUTHORIZED, None

    def forget(self, who):
        """The connection has ended."""
        self.exchanges.pop(who, None)

    def _first(self, who, data):
        name, nonce = data[5:].split(b",")[:2]
        _must(data[:5] in (b"n,,n=", b"y,,n=") and nonce[:2] == b"r=")
        _must(_visible(name) and _visible(nonce[2:]))
        _must(name.count(b"=") == name.count(b"=2C") + name.count(b"=3D"))
        name = name.replace(b"=2C", b",").replace(b"=3D", b"=")
        if len(self.exchanges) >= self.most:
            self.refused += 1
            return _SERVER_BUSY, None
        nonce += self.nonce()
        count, salt, stored, server = self._keys(name)
        answer = b"%s,s=%s,i=%d" % (nonce, _base64(salt), count)
        begin = b"c=%s,%s," % (_base64(data[:3]), nonce)
        self.exchanges[who] = name, stored, server, begin, b"%s,%s," % (data[3:], answer)
        return _CONTINUE_AUTHENTICATION, answer

    def _keys(self, name):
        # (iterations, salt, StoredKey, ServerKey) of a user. An unknown one, and one with a line
        # of mosquitto_passwd, which has no such keys, gets made-up ones.
        users = self.users
        slot = users.find(name)
        _, count, salt, secret = users.made_up(name)
        if slot == _NONE or slot in users.foreign:
            return count, salt, secret, secret
        salt = users.field(slot, _SALT, users.salt_bytes[slot])
        return users.iterations[slot], salt, users.field(slot, _STORED), users.field(slot, _SERVER)

    def _final(self, data, name, stored, server, begin, signed):
        self.last = name
        bare, _, proof = data.rpartition(b",p=")
        _must((bare + b",").startswith(begin))  # what follows may be extensions
        signed += bare
        key = xor(_bytes(proof), hmac(stored, signed))
        _must(same(hashlib.sha256(key).digest(), stored))
        self.user = name
        return 0, b"v=" + _base64(hmac(server, signed))


def _must(right):
    if not right:
        raise ValueError


def _visible(text):
    return text and all(32 < byte < 127 for byte in text)


def _base64(raw):
    return binascii.b2a_base64(raw)[:-1]


def _bytes(text):
    raw = binascii.a2b_base64(text)
    _must(_base64(raw) == text and len(raw) == _KEY)  # a2b takes what is no base64
    return raw
