# journal_cpython.py - the contract of fast/journal_viper.py on CPython.
import re
import zlib

_FIND = {
    bits: re.compile(b"[" + b"".join(b"\\x%02x" % i for i in range(256) if i & bits) + b"]")
    for bits in (1, 2, 32)
}


def crc_state():
    """The CRC so far."""
    return [0]


def crc_start(state):
    state[0] = 0


def crc_add(state, buf, off, n):
    state[0] = zlib.crc32(memoryview(buf)[off : off + n], state[0])


def crc_put(state, buf, at):
    """The CRC to buf[at:at + 4], the lowest byte last."""
    buf[at : at + 4] = state[0].to_bytes(4, "big")


def next_bit(flags, at, end, bits):
    """The first of flags[at:end] that has any of these bits, or end."""
    found = _FIND[bits].search(flags, at, end)
    return found.start() if found else end
