# scram_steps.py - the two messages of a client in an exchange of v5/scram.py: reads them, and
# makes the answers. Loaded on demand; owns nothing; allocates.
import binascii
import hashlib

from slotmq.access.pbkdf2 import hmac, same, xor
from slotmq.constants import KEY, NONE, SALT, STORED

_SERVER = 2
_CONTINUE_AUTHENTICATION = 0x18
_SERVER_BUSY = 0x89


def first(scram, who, data):
    """The client's first message; as Scram.auth(). ValueError: it is refused."""
    name, nonce = data[5:].split(b",")[:2]
    _must(data[:5] in (b"n,,n=", b"y,,n=") and nonce[:2] == b"r=")
    _must(str(name, "utf-8") and min(name) > 31 and b"\x7f" not in name and _visible(nonce[2:]))
    _must(name.count(b"=") == name.count(b"=2C") + name.count(b"=3D"))
    name = name.replace(b"=2C", b",").replace(b"=3D", b"=")
    if len(scram.exchanges) >= scram.most:
        scram.refused += 1
        return _SERVER_BUSY, None
    nonce += scram.nonce()
    count, salt, stored, server = _keys(scram.users, name)
    answer = b"%s,s=%s,i=%d" % (nonce, _base64(salt), count)
    begin = b"c=%s,%s," % (_base64(data[:3]), nonce)
    scram.exchanges[who] = name, stored, server, begin, b"%s,%s," % (data[3:], answer)
    return _CONTINUE_AUTHENTICATION, answer


def _keys(users, name):
    # (iterations, salt, StoredKey, ServerKey) of a user. An unknown one, and one with a line
    # of mosquitto_passwd, which has no such keys, gets made-up ones.
    slot = users.find(name)
    _, count, salt, secret = users.made_up(name)
    if slot == NONE or slot in users.foreign:
        return count, salt, secret, secret
    salt = users.field(slot, SALT, users.salt_bytes[slot])
    return users.iterations[slot], salt, users.field(slot, STORED), users.field(slot, _SERVER)


def final(scram, data, name, stored, server, begin, signed):
    """Its final message, with the proof."""
    scram.last = name
    bare, _, proof = data.rpartition(b",p=")
    _must((bare + b",").startswith(begin))  # what follows may be extensions
    signed += bare
    key = xor(_bytes(proof), hmac(stored, signed))
    _must(same(hashlib.sha256(key).digest(), stored))
    _must(_keys(scram.users, name)[2:] == (stored, server))  # a reload may have changed them
    scram.user = name
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
    _must(_base64(raw) == text and len(raw) == KEY)  # a2b takes what is no base64
    return raw
