# journal_viper.py - the inner loops of the journal on MicroPython, in viper: CRC-32 as in
# zlib, and a search for flags. Nothing here allocates after crc_state().
from array import array

import micropython


def crc_state():
    # [the CRC so far, the CRC of each half byte ...]
    cells = [0]
    for crc in range(16):
        for _ in range(4):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
        cells.append(crc)
    return array("I", cells)


def crc_start(state):
    state[0] = 0xFFFFFFFF


@micropython.viper
def crc_add(state: ptr32, buf: ptr8, off: int, n: int):
    crc = state[0]
    low = 1
    low = (low << 28) - 1
    n += off
    while off < n:
        crc ^= buf[off]
        crc = (crc >> 4) & low ^ state[(crc & 15) + 1]
        crc = (crc >> 4) & low ^ state[(crc & 15) + 1]
        off += 1
    state[0] = crc


@micropython.viper
def crc_put(state: ptr32, buf: ptr8, at: int):
    # The CRC to buf[at:at + 4], the lowest byte last.
    crc = state[0] ^ -1
    i = 4
    while i:
        i -= 1
        buf[at + i] = crc
        crc >>= 8


@micropython.viper
def next_bit(flags: ptr8, at: int, end: int, bits: int) -> int:
    # The first of flags[at:end] that has any of these bits, or end.
    while at < end and not flags[at] & bits:
        at += 1
    return at
