"""Segments that were copied by hand, from an SD card or with `mpremote cp`: the *.seg of a folder.

What Files of usb.py does for a board is done for them here. Nothing is known of when each was
copied: one that no later one follows may have been copied while the board was still writing it.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import ToolError
from .manifest import Copy, fuller
from .segments import Header, NotASegment, Scan, fitting, scan

_NAME = re.compile(r"[^.].*\.seg", re.IGNORECASE)  # hidden ones are macOS's own, beside each file


class Copies:
    """The files of a folder and of those in it, of one board or of several."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: dict[Header, tuple[Path, Scan]] = {}
        self._behind: dict[tuple[str, int], set[Header]] = {}  # by the number before theirs
        self.refused: list[str] = []
        self.unread: list[str] = []

    def headers(self) -> list[Header]:
        """Of all segments; of one that is there twice the fuller copy counts. What is no segment
        is told of in `refused`, and in `unread` what this computer cannot read."""
        for path in sorted(self._folder.rglob("*")):
            if _NAME.fullmatch(path.name) and path.is_file():
                self._look_at(path)
        if not self._found:
            why = "; ".join(self.refused + self.unread) or "there is no *.seg"
            raise ToolError(f"{self._folder}: it has no recordings ({why})")
        return sorted(self._found, key=lambda one: (one.board, one.segment, one.boot))

    def _look_at(self, path: Path) -> None:
        try:
            found = scan(fitting(path.read_bytes()))
        except NotASegment as error:
            self.refused.append(f"{path}: {error}")
        except OSError as error:
            self.unread.append(f"{path}: {error.strerror}")
        else:
            header = found.header
            if header not in self._found or found.last > self._found[header][1].last:
                self._found[header] = path, found
                before = header.board, header.segment - 1
                self._behind.setdefault(before, set()).add(header)

    def is_new(self, segment: Header, copy: Copy | None) -> bool:
        """Has a file more than the folder of the harvest has?"""
        grown = 0 if self.grows(segment) else None
        return copy is None or fuller(self._found[segment][1].last, grown, copy)

    def grows(self, segment: Header) -> bool:
        """May the board have more of it, as far as the files tell? It has not if the next one is
        of a later start, or begins where this one ends, or if this one is damaged before that."""
        found = self._found[segment][1]
        is_damaged = found.torn and not found.cut
        return not any(
            each.boot > segment.boot
            or (each.boot == segment.boot and (is_damaged or each.first == found.last + 1))
            for each in self._behind.get((segment.board, segment.segment), ())
        )

    def fetch(self, segment: Header, begin: int) -> Iterator[bytes]:
        """A segment's bytes from `begin` on."""
        with self._found[segment][0].open("rb") as file:
            file.seek(begin)
            yield file.read()
