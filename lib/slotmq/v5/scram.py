# scram.py - SCRAM-SHA-256, for the enhanced authentication of MQTT 5.0 [4.12; RFC 5802, 7677].
#
# Owns the users, which are read from a file once, and the exchanges under way, by `who` (the
# connection). If `most` are under way, another one is refused as "server busy" and counted in
# `refused`; the broker's `most` is its number of connections.
#     file       name:iterations:salt:StoredKey:ServerKey, base64 from the salt (8 to 32
#                bytes) on; `slotmq passwd` writes it. Empty lines and comments (#) are skipped.
#     users      name -> (iterations, salt, StoredKey, ServerKey); some 250 bytes each
#     exchanges  who -> (name, StoredKey, ServerKey, how the final message has to begin,
#                what is signed before it); at most 2 KB each
# Names are ASCII without blanks, which SASLprep does not change. An unknown name gets the same
# exchange and the same refusal as a wrong password. Allocates: called at CONNECT and AUTH only.
import binascii
import hashlib
import os

from slotmq.platform.runtime import const

_KEY = const(32)  # bytes of SHA-256's digest; half of its block
_DATA_MAX = const(512)  # bytes of a client's message
_CONTINUE_AUTHENTICATION = const(0x18)
_UNAUTHORIZED = const(0x87)
_SERVER_BUSY = const(0x89)
_BAD_AUTHENTICATION_METHOD = const(0x8C)

_secret = os.urandom(_KEY)  # of the process: made-up salts must stay the same


class Scram:
    def __init__(self, path, most=16):
        self.user = None  # the name that the last auth() accepted
        self.last = None  # the name that it was asked about
        self.most = most
        self.refused = 0
        self.users = {}
        self.exchanges = {}
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    self._add(line.strip())
                except ValueError:
                    expected = "a new name:iterations (4096 or more):salt:StoredKey:ServerKey"
                    raise ValueError("%s:%d: expected %s" % (path, number, expected))

    def _add(self, line):
        if line and line[:1] != b"#":
            name, count, salt, stored, server = line.split(b":")
            _must(_visible(name) and name not in self.users)
            _must(int(count) >= 4096 and str(int(count)).encode() == count)  # RFC 7677, 4
            self.users[name] = count, _bytes(salt, 8), _bytes(stored), _bytes(server)

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
        count, salt, stored, server = self.users.get(name, self._made_up(name))
        answer = b"%s,s=%s,i=%s" % (nonce, _base64(salt), count)
        begin = b"c=%s,%s," % (_base64(data[:3]), nonce)
        self.exchanges[who] = name, stored, server, begin, b"%s,%s," % (data[3:], answer)
        return _CONTINUE_AUTHENTICATION, answer

    def _made_up(self, name):
        # A made-up user for an unknown name: iterations and salt length as some user has them, and
        # for one name always the same
        made = _hmac(_secret, name)
        users = list(self.users.values()) or [(b"4096", made[:16])]
        count, salt = users[made[-1] % len(users)][:2]
        return count, made[: len(salt)], _secret, _secret

    def _final(self, data, name, stored, server, begin, signed):
        self.last = name
        bare, _, proof = data.rpartition(b",p=")
        _must((bare + b",").startswith(begin))  # what follows may be extensions
        signed += bare
        key = _xor(_bytes(proof), _hmac(stored, signed))
        # The sum takes the same time wherever the two differ.
        _must(sum(_xor(hashlib.sha256(key).digest(), stored)) == 0)
        self.user = name
        return 0, b"v=" + _base64(_hmac(server, signed))


def _must(right):
    if not right:
        raise ValueError


def _visible(text):
    return text and all(32 < byte < 127 for byte in text)


def _base64(raw):
    return binascii.b2a_base64(raw)[:-1]


def _bytes(text, least=_KEY):
    raw = binascii.a2b_base64(text)
    _must(_base64(raw) == text and least <= len(raw) <= _KEY)  # a2b takes what is no base64
    return raw


def _xor(one, other):
    return bytes(a ^ b for a, b in zip(one, other))


def _hmac(key, text):
    key += bytes(_KEY)
    inner = hashlib.sha256(_xor(key, b"\x36" * 64) + text).digest()
    return hashlib.sha256(_xor(key, b"\x5c" * 64) + inner).digest()
