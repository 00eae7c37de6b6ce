# journal_records.py - how a record of the journal becomes bytes: type, length, body, CRC-32,
# appended to the medium piece by piece. Does not allocate after construction.
from slotmq.encode import length_bytes, put_header, put_u16
from slotmq.runtime import const
from slotmq.runtime_journal import crc_add, crc_put, crc_start, crc_state

_FIELDS = const(8)  # where a record's body begins in buf; its type and length stand before


def put_u32(buf, at, value):
    return put_u16(buf, put_u16(buf, at, value >> 16 & 0xFFFF), value & 0xFFFF)


class Records:
    def __init__(self, medium, generation, longest):
        self.medium = medium
        self.generation = generation
        self.buf = bytearray(_FIELDS + 64 + longest)
        self.seed = bytearray(4)  # the generation, with which each CRC begins
        self.crc = crc_state()
        self.records = 0  # since the last COMMIT

    def record(self, kind, end, more=0):
        # buf[_FIELDS:end] is the body, or its beginning: so many bytes more will follow.
        n = end - _FIELDS + more
        start = _FIELDS - 1 - length_bytes(n)
        put_header(self.buf, start, kind, n)
        crc_start(self.crc)
        crc_add(self.crc, self.seed, 0, 4)
        self.put(start, end - start)
        if not more:
            self.close_record()

    def put(self, off, n):
        crc_add(self.crc, self.buf, off, n)
        self.medium.append(self.buf, off, n)

    def close_record(self):
        crc_put(self.crc, self.buf, 0)
        self.medium.append(self.buf, 0, 4)
        self.records += 1

    def gone(self, kind, rows, slot):
        if rows[slot]:
            self.record(kind, put_u16(self.buf, _FIELDS, slot))
            rows[slot] = 0
