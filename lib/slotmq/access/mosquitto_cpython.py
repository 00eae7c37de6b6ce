# mosquitto_cpython.py - users of mosquitto_passwd: PBKDF2 with SHA-512 ($7$), salted SHA-512
# ($6$), and argon2id, if the library argon2-cffi is installed. On a computer only: a board has no
# SHA-512.
#     $7$iterations$salt$key    $6$salt$key    $argon2id$v=19$m=...,t=...,p=...$salt$key
# Owns nothing; a User is stored in Users.foreign. Allocates.
import base64
import binascii
import hashlib

from slotmq.access import pbkdf2

_KEY_BYTES = 64
_EXPECTED = "a line of mosquitto_passwd: $7$iterations$salt$key, $6$salt$key, $argon2id$..."
_NO_LIBRARY = "a line without argon2id, which needs the Python library argon2-cffi"
_ITERATIONS_MAX = 10000000  # iterations


class User:
    """What a line says: kind, iterations, salt, key, the text of argon2id."""

    def __init__(self, kind, iterations, salt, key, text=b""):
        self.kind = kind
        self.iterations = iterations
        self.salt = salt
        self.key = key
        self.text = text

    def __eq__(self, other):
        return isinstance(other, User) and vars(self) == vars(other)

    def __hash__(self):
        return hash((self.kind, self.key))

    def kinship(self):
        """What lines that cost the same have in common."""
        return self.kind, self.iterations, len(self.salt), self.text.rpartition(b",")[0]


def parse(text):
    """The User of a line; ValueError."""
    words = text.split(b"$")
    try:
        if words[1] == b"argon2id" and len(words) == 6:
            return User(2, 1, b"", hashlib.sha512(text).digest(), text)
        if words[1] == b"7" and len(words) == 5 and words[2].isdigit():
            if 0 < int(words[2]) <= _ITERATIONS_MAX:
                return User(7, int(words[2]), _decoded(words[3]), _key(words[4]))
        if words[1] == b"6" and len(words) == 4:
            return User(6, 1, _decoded(words[2]), _key(words[3]))
    except (IndexError, binascii.Error):
        pass
    raise ValueError(_EXPECTED)


def usable(text):
    """The same for a broker, which must be able to check the password."""
    user = parse(text)
    if user.text and _argon2() is None:
        raise ValueError(_NO_LIBRARY)
    return user


def _decoded(text):
    return base64.b64decode(text, validate=True)


def _key(text):
    key = _decoded(text)
    if len(key) != _KEY_BYTES:
        raise ValueError(_EXPECTED)
    return key


def _argon2():
    try:
        from argon2 import low_level
    except ImportError:
        return None
    return low_level


def begin(user, password, salt=None):
    """The work of access/pbkdf2.py whose key is the user's if the password is right. salt: instead
    of the user's, for one that does not exist."""
    if user.kind == 7:
        salt = user.salt if salt is None else salt
        return pbkdf2.begin(password, salt, user.iterations, hashlib.sha512, 128)
    if user.kind == 6:
        key = hashlib.sha512(password + (user.salt if salt is None else salt)).digest()
    else:
        # The library computes it at once, some 30 ms with the parameters of mosquitto_passwd.
        key = user.key if _verify(user.text, password) else bytes(_KEY_BYTES)
    return [b"", b"", key, int.from_bytes(key, "big"), 0, hashlib.sha512]


def _verify(text, password):
    library = _argon2()
    try:
        return bool(library.verify_secret(text, password, library.Type.ID))
    except Exception as error:
        if isinstance(error, MemoryError):
            raise
        return False
