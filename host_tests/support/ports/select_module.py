# select_module.py - the select module of MicroPython's ports (extmod/modselect.c, the same in
# 1.25.0 and 1.26.1). Comments name its functions.
#
#   select = Select(stack); select.poll() -> Poll     stack: see network_stack.py
#
# `stack.POSIX_POLL` says whether the port has MICROPY_PY_SELECT_POSIX_OPTIMISATIONS (unix) or not
# (rp2, esp32). Crash is raised where the C code would follow a NULL pointer.


class Crash(BaseException):
    """The board would have crashed here."""


_EMPTY = 0
_REMOVED = 1
_SIZES = (0, 1, 2, 4, 6, 8, 10, 12, 17, 23, 29, 37, 47, 59, 73)  # py/map.c


class _Entry:
    def __init__(self, obj, events):
        self.obj = obj
        self.events = events
        self.revents = 0


class Poll:
    def __init__(self, stack):
        self.stack = stack
        self.table = []  # of _EMPTY, _REMOVED or [object, its _Entry or None]
        self._count = 0
        self._index = 0

    def _find(self, obj):
        # mp_map_lookup: -> (its index or None, the first free index or None)
        size = len(self.table)
        free = None
        for i in range(size):
            at = ((id(obj) >> 4) + i) % size
            slot = self.table[at]
            if slot == _EMPTY:
                return None, at if free is None else free
            if slot == _REMOVED:
                free = at if free is None else free
            elif slot[0] is obj:
                return at, None
        return None, free

    def register(self, obj, events=5):
        heap = self.stack.heap
        locked = heap.enter()
        try:
            self._add(obj, events, locked)
        finally:
            heap.leave()

    def _add(self, obj, events, locked):
        # poll_set_add_obj: the map's entry exists before its object is allocated, and stays
        # without one if that fails.
        alloc = self.stack.heap.alloc
        alloc("register: call", locked)
        at, free = self._find(obj)
        if at is None:
            if free is None:
                alloc("register: map", locked)
                self._grow()
                free = self._find(obj)[1]
            at = free
            self.table[at] = [obj, None]
        if self.table[at][1] is None:
            alloc("register: entry", locked)
            self.table[at][1] = _Entry(obj, events)
        else:
            self.table[at][1].events = events

    def _grow(self):
        # mp_map_rehash: entries change their places, even during an ipoll()
        old = self.table
        self.table = [_EMPTY] * min([size for size in _SIZES if size > len(old)])
        for slot in old:
            if slot not in (_EMPTY, _REMOVED):
                self.table[self._find(slot[0])[1]] = slot

    def unregister(self, obj):
        # poll_unregister: without the POSIX optimisations it does not use the object
        heap = self.stack.heap
        heap.enter()
        try:
            at = self._find(obj)[0]
            if at is not None:
                if self.stack.POSIX_POLL and self.table[at][1] is None:
                    raise Crash("unregister of an entry without an object")
                self.table[at] = _REMOVED
        finally:
            heap.leave()

    def modify(self, obj, events):
        heap = self.stack.heap
        heap.enter()
        try:
            at = self._find(obj)[0]
            if at is None:
                raise OSError(2)
            self._entry(at).events = events
        finally:
            heap.leave()

    def _entry(self, at):
        entry = self.table[at][1]
        if entry is None:
            raise Crash("an entry without an object")
        return entry

    def ipoll(self, timeout_ms=-1, flags=0):
        stack = self.stack
        locked = stack.heap.enter()
        try:
            end = stack.clock.ms + timeout_ms
            self._count = self._poll_once()
            while not self._count and stack.clock.ms < end:
                stack.pass_time(min(stack.TICK_MS, end - stack.clock.ms), locked)
                self._count = self._poll_once()
        finally:
            stack.heap.leave()
        self._index = 0
        return self

    def _poll_once(self):
        # poll_set_poll_once
        ready = 0
        for at in range(len(self.table)):
            if self.table[at] not in (_EMPTY, _REMOVED):
                entry = self._entry(at)
                entry.revents = entry.obj.poll(entry.events)
                ready += entry.revents != 0
        return ready

    def __iter__(self):
        return self

    def __next__(self):
        # poll_iternext: it goes through the map as it is now
        heap = self.stack.heap
        heap.enter()
        try:
            if self._count:
                self._count -= 1
                while self._index < len(self.table):
                    at = self._index
                    self._index += 1
                    if self.table[at] not in (_EMPTY, _REMOVED):
                        entry = self._entry(at)
                        if entry.revents:
                            return entry.obj, entry.revents
            return self._stop()
        finally:
            heap.leave()

    def _stop(self):
        self._count = 0
        raise StopIteration


class Select:
    POLLIN, POLLOUT, POLLERR, POLLHUP = 1, 4, 8, 16

    def __init__(self, stack):
        self._stack = stack

    def poll(self):
        return Poll(self._stack)
