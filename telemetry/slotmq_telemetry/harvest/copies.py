"""Segment files (*.seg) that were copied by hand, from an SD card or with `mpremote cp`.

Copies has the methods that Files of usb.py has for a board. A file may have been copied while the
board was still writing it. It counts as complete only if the next segment of the same boot is
there, too, and begins where it ends; a segment of a later boot may be from another day.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from slotmq_tools.errors import ToolError

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
        paths = [
            Path(folder, name)
            for folder, _, names in os.walk(self._folder, onerror=self._cannot_list)
            for name in names
            if _NAME.fullmatch(name)
        ]
        for path in sorted(paths):
            self._look_at(path)
        if not self._found:
            why = "; ".join(self.refused + self.unread) or "there is no *.seg"
            raise ToolError(f"{self._folder} has no recordings ({why})")
        return sorted(self._found, key=lambda one: (one.board, one.segment, one.boot))

    def _cannot_list(self, error: OSError) -> None:
        self.unread.append(f"{error.filename}: {error.strerror}")

    def _look_at(self, path: Path) -> None:
        try:
            if not path.is_file():
                return
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
        """May the board have more of it, as far as the files tell? It has not if the next one of
        the same start begins where this one ends; a damaged one may be so in its copy only."""
        next_seq = self._found[segment][1].last + 1
        return not any(
            each.boot == segment.boot and each.first == next_seq
            for each in self._behind.get((segment.board, segment.segment), ())
        )

    def fetch(self, segment: Header, begin: int) -> Iterator[bytes]:
        """A segment's bytes from `begin` on."""
        with self._found[segment][0].open("rb") as file:
            file.seek(begin)
            yield file.read()
