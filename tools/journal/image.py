"""Bytes of a journal file, or of a copied flash region, as a medium for the broker's reader."""

from binascii import crc32
from typing import Any

from slotmq.journal.medium_flash import FlashMedium

_HEADER = 16
_MAGIC = b"slotmqJ\x01"
_BLOCK = 4096
_GENERATIONS = 1 << 30


class Chip:
    """The bytes of a flash region as a block device that can only be read."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def readblocks(self, block: int, buf: bytearray, offset: int = 0) -> None:
        """Fill `buf` with the bytes of a block from `offset`."""
        at = block * _BLOCK + offset
        buf[:] = self._data[at : at + len(buf)]

    def ioctl(self, operation: int, _: int) -> int:
        """4: the number of blocks; 5: the bytes of a block."""
        return len(self._data) // _BLOCK if operation == 4 else _BLOCK


class Image:
    """A medium for slotmq.journal.reader.Reader."""

    page = 1

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._flash: Any = None
        self.end = len(data) - _HEADER
        self.version = 0  # of the medium's format, also if it is unknown

    def generations(self) -> list[int]:
        """The numbers of the generations, the newest first; []: no journal."""
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
        """Whether blocks of the newest generation, or of newer ones, have damaged headers."""
        return bool(self._flash and self._flash.failed)

    def open(self, generation: int) -> None:
        """Select the generation that readinto() reads."""
        if self._flash:
            self._flash.open(generation)

    def readinto(self, at: int, buf: bytearray, n: int) -> int:
        """Read up to n bytes from the offset `at`; -> how many there were."""
        if self._flash:
            count: int = self._flash.readinto(at, buf, n)
            return count
        part = self._data[_HEADER + at : _HEADER + at + n]
        buf[: len(part)] = part
        return len(part)
