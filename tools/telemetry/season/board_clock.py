"""What a board of a season knows about the time, and which anchors it records."""

from __future__ import annotations

from dataclasses import dataclass

from . import writer as w


@dataclass(frozen=True)
class Wall:
    """The time, as somebody has said it."""

    quality: int
    wall: int  # ms
    error: int  # ms
    uptime: int  # of the board then, ms
    is_false: bool  # whoever said so was wrong

    def at(self, uptime: int) -> Wall:
        """The same, as it has passed since by the board's own crystal."""
        passed = uptime - self.uptime
        error = self.error + passed // 10_000
        return Wall(self.quality, self.wall + passed, error, uptime, self.is_false)

    def gives_way(self, other: Wall) -> bool:
        """Another one is known from now on."""
        now = self.at(other.uptime)
        return other.quality >= now.quality or other.error <= now.error

    def payload(self) -> bytes:
        """Of an ANCHOR."""
        return w.le(self.wall // 1000, 4) + w.le(self.wall % 1000, 2) + w.le(self.error, 4)
