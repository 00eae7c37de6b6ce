# pbkdf2.py - PBKDF2 [RFC 8018, 5.2] with one block of output, in slices, and HMAC [RFC 2104].
#
# A slice is bounded, so that a turn of the loop can have one beside its other work: on a board the
# whole takes seconds. MicroPython has neither hmac nor a hash object that can be copied, so each
# iteration hashes the padded key again: four blocks of SHA-256, and some 500 bytes of garbage.
#     work   [padded key and 32 or 64 bytes (inner, outer), the last U, XOR of all,
#            iterations left, hash]; made by begin(), changed by advance()
# Owns nothing. Allocates: for CONNECT and AUTH only.
import hashlib

from slotmq.platform.runtime import MICROPYTHON

_LAST_U, _SUM, _ITERATIONS_LEFT = range(2, 5)
# Iterations of a slice. On an emulated RP2040 its turn takes some 700,000 cycles, 6 ms; one with a
# collection stays below 50 ms (host_tests/board/test_login_cycles.py).
_SLICE = 10 if MICROPYTHON else 512


def begin(password, salt, iterations, sha=hashlib.sha256, block=64):
    """The work of one password; block: bytes of a block of `sha`."""
    inner, outer = _pads(password, sha, block)
    u = sha(outer + sha(inner + salt + b"\0\0\0\1").digest()).digest()
    space = bytes(len(u))
    return [inner + space, outer + space, u, int.from_bytes(u, "big"), iterations - 1, sha]


def advance(work):
    """One slice; -> the key if that was the last one, else None."""
    inner, outer, u, total, left, sha = work
    at = len(inner) - len(u)
    for _ in range(min(left, _SLICE)):
        inner[at:] = u
        outer[at:] = sha(inner).digest()
        u = sha(outer).digest()
        total ^= int.from_bytes(u, "big")
    work[_LAST_U] = u
    work[_SUM] = total
    work[_ITERATIONS_LEFT] = left = max(0, left - _SLICE)
    return None if left else total.to_bytes(len(u), "big")


def _pads(key, sha, block):
    if len(key) > block:
        key = sha(key).digest()
    key += bytes(block - len(key))
    return bytearray([byte ^ 0x36 for byte in key]), bytearray([byte ^ 0x5C for byte in key])


def hmac(key, text):
    """HMAC-SHA-256."""
    inner, outer = _pads(key, hashlib.sha256, 64)
    inner = hashlib.sha256(inner + text).digest()
    return hashlib.sha256(outer + inner).digest()


def xor(one, other):
    return bytes([a ^ b for a, b in zip(one, other)])


def same(one, other):
    """Are they equal? It takes the same time wherever they differ."""
    return len(one) == len(other) and sum(xor(one, other)) == 0
