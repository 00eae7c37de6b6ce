# medium_flash_start.py - the rare tasks of a journal's region of flash: finds, reads and sets
# aside generations, begins a new one after the current one, switches to that. Loaded on demand;
# owns nothing: `medium` is a FlashMedium (journal/medium_flash.py). Allocates.
from binascii import crc32
from struct import unpack_from

from slotmq.constants import BITS, HEADER, PAGE, SECOND


_MAGIC = b"slotmqJ\x01"  # the last byte is the version of the format


def generations(medium):
    numbers = {}  # of each generation: one bit for each of its blocks
    rotten = 0  # one bit for each block whose header was valid once
    medium.is_foreign = 0  # bytes of no generation: 1, or the version of their header
    for block in range(medium.blocks):
        generation, birth, number = _head(medium, block)
        if number >= 0:
            key = generation, birth, (block - number) % medium.blocks
            numbers[key] = numbers.get(key, 0) | 1 << number
            medium.births = max(medium.births, birth)
        elif medium.buf[0] != 0xFF:
            medium.is_foreign = medium.is_foreign or 1
            rotten |= _has_rotted(medium.buf) << block
    medium.found = {
        key[0]: key + (bits,)
        for key, bits in sorted(numbers.items())
        if not bits & (bits + 1)  # from block 0 on, none is missing
    }
    found = sorted(medium.found, reverse=True)
    is_lost = found and _is_lost(medium, medium.found[found[0]], numbers, rotten)
    medium.failed = rotten if is_lost else 0
    return found


def _has_rotted(page):
    # Was this a header once? A page is programmed from its beginning. So after a power cut either
    # the first copy is whole or there is nothing of the second: if the first is wrong and most of
    # the second's magic is there, it has rotted.
    if unpack_from("<I", page, HEADER - 4)[0] == crc32(page[: HEADER - 4]):
        return False
    return sum([page[SECOND + i] == _MAGIC[i] for i in range(8)]) > 5


def _is_lost(medium, newest, numbers, rotten):
    # Has the end of the newest whole generation rotted, or a newer generation? (A generation that
    # never became the current one has no block 0.)
    _, birth, first, bits = newest
    after = (first + len(bin(bits)) - 2) % medium.blocks
    if rotten >> after & 1:
        return True
    return any([key[1] > birth and numbers[key] & 1 for key in numbers])


def _head(medium, block):
    # (generation, birth, number) of a header, from the copy that is valid; number -1: none is.
    buf = medium.buf
    medium.device.readblocks(block, buf, 0)
    for at in (0, SECOND):
        magic, generation, birth, number, crc = unpack_from("<8s4I", buf, at)
        if magic[:7] == _MAGIC[:7] and crc == crc32(buf[at : at + HEADER - 4]):
            fits = number < medium.blocks and not (generation | birth) >> BITS
            if fits and magic == _MAGIC:
                return generation, birth, number
            medium.is_foreign = magic[7]
    return 0, 0, -1


def reopen(medium, generation):
    _, birth, medium.first, bits = medium.found[generation]
    medium.opened = generation, birth
    medium.base = medium.first
    medium.length = len(bin(bits)) - 2
    medium.end = medium.length * medium.data


def set_aside(medium, generation, is_needed):
    blocks = 0 if generation else medium.failed  # erased, so that they are reported only once
    if generation in medium.found and not is_needed:
        blocks = 1 << medium.found[generation][2]
    worn = -1
    for block in range(medium.blocks):
        try:
            if blocks >> block & 1:
                medium.erase(block)
        except OSError:
            worn = block  # what is written next has a higher number
    if worn >= 0:
        return "block %d, which cannot be erased" % worn
    return "" if medium.is_foreign and not generation else None


def readinto(medium, at, buf, n):
    n = max(0, min(n, medium.length * medium.data - at))
    view = memoryview(buf)
    done = 0
    while done < n:
        rest = (at + done) % medium.data
        part = min(n - done, medium.data - rest)
        block = (medium.first + (at + done) // medium.data) % medium.blocks
        medium.device.readblocks(block, view[done : done + part], PAGE + rest)
        done += part
    return n


def spare(medium, n):
    return min(n, medium.most) <= (medium.blocks - medium.length) * medium.data


def resume(medium, end):
    medium.base = medium.first
    medium.ident = medium.opened
    medium.end = end
    medium.space = medium.capacity


def begin(medium, generation):
    skip = _skipped_blocks(medium)
    medium.space = -1
    medium.births += 1
    medium.ident = generation, medium.births
    medium.base = (medium.first + medium.length + skip) % medium.blocks
    medium.end = 0
    medium.erase(medium.base)
    medium.space = (medium.blocks - medium.length - skip) * medium.data


def _skipped_blocks(medium):
    # How many blocks the next generation skips after the current one: those up to the block where
    # the last write failed, if it did (then `space` is -1; a lack of space leaves it as it was).
    # The failed block is tried again after all others.
    if medium.space >= 0 or not getattr(medium, "ident", None):
        return 0
    skip = medium.base + medium.end // medium.data + 1 - medium.first - medium.length
    skip %= medium.blocks
    return skip if skip < medium.blocks - medium.length else 0


def switch(medium):
    medium.sync()
    medium.space = -1
    medium.put_header(0)
    medium.opened = medium.ident
    medium.first = medium.base
    medium.length = max(1, -(-medium.end // medium.data))
    medium.found = {}
    medium.space = medium.capacity
