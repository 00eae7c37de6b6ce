# memory_medium.py - a medium for journals in memory, which can lose its power after any number of
# bytes. It allocates, and unlocks the heap for that.
from slotmq.platform import heap


class PowerCut(Exception):
    pass


class MemoryMedium:
    page = 1
    most = 1 << 20
    written = erased = 0

    def __init__(self, capacity=1 << 20, durable=None):
        self.capacity = capacity
        self.durable = durable or {}  # generation: durable bytes
        self.current = max(self.durable) if self.durable else 0
        self.making = None
        self.is_open = True
        self.error = 28  # ENOSPC
        self.lost = b""  # appended but not durable
        self.power = 1 << 30  # bytes until the power fails
        self.space = 1 << 30  # bytes until it is full
        self.syncs = self.synced = 0

    @property
    def end(self):
        return len(self.durable[self._written()]) + len(self.lost)

    def _written(self):
        # The generation that is written.
        return self.current if self.making is None else self.making

    def written_bytes(self):
        """Bytes that became durable since it was made."""
        return self.synced

    def generations(self):
        return sorted(self.durable, reverse=True)

    def open(self, generation):
        self.current = generation

    def readinto(self, at, buf, n):
        found = self.durable[self.current][at : at + n]
        for i in range(len(found)):
            buf[i] = found[i]
        return len(found)

    def spare(self, n):
        return n <= self.space

    def begin(self, generation):
        with heap.lifted:
            self.is_open = True
            self.making = generation
            self.durable[generation] = b""
            self.lost = b""

    def append(self, buf, off, n):
        with heap.lifted:
            if n > self.space or not self.is_open:
                raise OSError(self.error, "full")
            self.space -= n
            self.lost += bytes(buf[off : off + n])

    def sync(self):
        with heap.lifted:
            self.syncs += 1
            self.synced += len(self.lost)
            done = self.lost[: self.power]
            self.power -= len(self.lost)
            self.durable[self._written()] += done
            if self.power < 0:
                raise PowerCut
            self.lost = b""

    def switch(self):
        with heap.lifted:
            before = self.current
            self.current = self.making
            self.making = None
            if before != self.current:
                self.durable.pop(before, None)

    def close(self):
        self.is_open = False

    def set_aside(self, generation, is_needed=False):
        if not generation:
            return None
        if not is_needed:
            self.durable.pop(generation)
        return f"damaged-{generation}"

    def after_the_cut(self):
        """What the next start finds: not a generation that was begun and not finished."""
        durable = dict(self.durable)
        if self.making is not None:
            durable.pop(self.making, None)
        return MemoryMedium(self.capacity, durable)
