"""What a test has seen of its broker, and waits for more of it, in a thread or in asyncio."""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from . import texts
from .texts import Message

_T = TypeVar("_T")
Look = Callable[[], _T | None]
_MOST_PACKETS = 2000
__tracebackhide__ = texts.is_told


class Seen:
    """Messages, a line for each of the last packets, and who waits for a change."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.packets: deque[str] = deque(maxlen=_MOST_PACKETS)
        self.changes = 0  # how often changed() was called
        self.came = threading.Condition()
        self._tasks: list[Callable[[], object]] = []  # wakes one that waits in asyncio

    def add(self, message: Message) -> None:
        self.messages.append(message)
        self.changed()

    def changed(self) -> None:
        """Let those that wait look again."""
        with self.came:
            self.changes += 1
            self.came.notify_all()
            for wake in self._tasks:
                wake()

    def wait(self, look: Look[_T], check: Callable[[], None], timeout: float) -> _T | None:
        """Until look() returns something: that; or None after the timeout. check() may raise."""
        end = time.monotonic() + timeout
        while True:
            seen = self.changes
            found = look()
            if found is not None:
                return found
            check()
            left = end - time.monotonic()
            if left <= 0:
                return None
            with self.came:
                self.came.wait_for(lambda before=seen: self.changes != before, left)  # type: ignore[misc]

    async def wait_async(
        self, look: Look[_T], check: Callable[[], None], timeout: float
    ) -> _T | None:
        """wait() for asyncio; it can be cancelled."""
        import asyncio  # here, since its import takes as long as the broker's

        loop = asyncio.get_running_loop()
        event = asyncio.Event()

        def wake() -> object:
            return loop.call_soon_threadsafe(event.set)

        end = time.monotonic() + timeout
        with self.came:
            self._tasks.append(wake)
        try:
            while True:
                event.clear()
                found = look()
                if found is not None:
                    return found
                check()
                left = end - time.monotonic()
                if left <= 0:
                    return None
                try:
                    await asyncio.wait_for(event.wait(), left)
                except TimeoutError:
                    continue  # look once more
        finally:
            with self.came:
                self._tasks.remove(wake)
