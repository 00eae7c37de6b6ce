"""A journal's bytes as its own medium would give them: a file, or a copy of a flash region."""

from binascii import crc32
from typing import Any

from slotmq.journal.medium_flash import FlashMedium

_HEADER = 16
_MAGIC = b"slotmqJ\x01"
_BLOCK = 4096
_GENERATIONS = 1 << 30


class Chip:
    """Those bytes as a block device, which nobody may write."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def readblocks(self, block: int, buf: bytearray, offset: int = 0) -> None:
        """Bytes of a block from `offset` on."""
        at = block * _BLOCK + offset
        buf[:] = self._data[at : at + len(buf)]

    def ioctl(self, operation: int, _: int) -> int:
        """How many blocks there are, and how large they are."""
        return len(self._data) // _BLOCK if operation == 4 else _BLOCK


class Image:
    """What Reader asks of a medium."""

    page = 1

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._flash: Any = None
        self.end = len(data) - _HEADER
        self.version = 0  # of the medium's format, where that is no reason to read it

    def generations(self) -> list[int]:
        """Those that there are, the newest first."""
        data = self._data
        if data[:7] == _MAGIC[:7] and data[12:16] == crc32(data[:12]).to_bytes(4, "little"):
            generation = int.from_bytes(data[8:12], "little")
            self.version = data[7]
            if data[7] == _MAGIC[7] and generation < _GENERATIONS:
                return [generation]
        if not data or len(data) % _BLOCK:
            return []
        self._flash = FlashMedium(Chip(data), 0)
        self.page = self._flash.page
        found: list[int] = self._flash.generations()
        self.version = max(self.version, self._flash.is_foreign)
        return found

    @property
    def has_rotted(self) -> bool:
        """Was there a newer generation, or more of the newest, whose headers have rotted?"""
        return bool(self._flash and self._flash.failed)

    def open(self, generation: int) -> None:
        """Read this one."""
        if self._flash:
            self._flash.open(generation)

    def readinto(self, at: int, buf: bytearray, n: int) -> int:
        """Bytes of it from `at` on; how many there were."""
        if self._flash:
            count: int = self._flash.readinto(at, buf, n)
            return count
        part = self._data[_HEADER + at : _HEADER + at + n]
        buf[: len(part)] = part
        return len(part)
