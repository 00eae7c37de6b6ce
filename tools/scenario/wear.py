"""The journal's flash: the real medium over a simulated device, and its lifetime. The wear by a
file on littlefs is estimated from the number of commits and measurements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slotmq.journal.location import snapshot_bytes
from slotmq.journal.medium_flash import FlashMedium
from slotmq.journal.restore import restore
from slotmq.journal.start import DEFAULTS

from .. import boards
from ..errors import ToolError
from ..sim.flash import Flash
from .read import BadScenario

if TYPE_CHECKING:
    from .model import Persistence

# Bytes that littlefs programs and erases for one synced append on a Pico: lib/FORMAT.md
LITTLEFS_PROGRAMMED, LITTLEFS_ERASED = 2519, 4498
RAW_BYTES = 262144  # size of a region by default: 64 blocks
_AUTOSAVE_S = DEFAULTS["autosave_interval"]
_YEAR_MS = 365.25 * 86_400_000


@dataclass(frozen=True)
class Wear:
    """The wear of a run."""

    medium: str
    commits: int
    programmed: int  # bytes
    erased: int
    years: float | None  # until the endurance is used up; None: nothing was written
    raw_years: float | None  # the same for a raw region, of 256 KB if the journal is a file


class Journal:
    """The journal of a broker with persistence; it outlives the broker."""

    def __init__(self, config: Persistence | None, board: str) -> None:
        self._config = config
        self._is_host = board == "HOST"  # a computer's limits
        self._size = _size(config, board) if config else 0
        self._journal: Any = None
        self._device: Any = None  # survives a power failure
        self._commits = 0  # of the brokers before a power failure
        self._before = 0, 0, 0

    def attach(self, broker: Any) -> None:
        """Restore a broker from the journal, and let it write there."""
        config = self._config
        if not config:
            return
        snapshot = snapshot_bytes(broker.limits)
        if self._journal:
            self._commits += self._journal.commits
        if not self._device:
            self._device = _flash(config, self._size, snapshot, is_host=self._is_host)
        medium = _Medium(self._device, snapshot)  # type: ignore[no-untyped-call]
        interval = getattr(broker.settings, "autosave_interval", _AUTOSAVE_S)
        try:
            always = config.sync == "always"
            self._journal = restore(broker, medium, _no_log, always, interval)
        except OSError as error:
            raise ToolError(f"the broker cannot start with its journal: {error}") from None

    def begin(self) -> None:
        """Start to measure: writes of the start do not count."""
        self._before = self._now()

    def _now(self) -> tuple[int, int, int]:
        if not self._journal:
            return 0, 0, 0
        device = self._device
        erased = device.erasures * device.block_bytes
        return self._commits + self._journal.commits, device.programmed_bytes, erased

    def wear(self, ms: int) -> Wear | None:
        """The wear of so many milliseconds."""
        config = self._config
        if not config:
            return None
        commits, programmed, erased = (
            after - before for after, before in zip(self._now(), self._before, strict=True)
        )
        # All that was programmed will have to be erased, even if no block has been so far.
        life = config.endurance * ms / _YEAR_MS  # years, if each byte is written once in this time
        most = max(programmed, erased)
        raw = RAW_BYTES if config.medium == "littlefs" else self._size
        raw_years = raw * life / most if most else None
        if config.medium == "flash":
            return Wear(config.medium, commits, programmed, erased, raw_years, raw_years)
        programmed, erased = commits * LITTLEFS_PROGRAMMED, commits * LITTLEFS_ERASED
        years = self._size * life / erased if erased else None
        return Wear(config.medium, commits, programmed, erased, years, raw_years)


class _Medium(FlashMedium):
    """Uses a slice, which is faster here; on a board the loop needs less memory."""

    def _blank(self, at: int) -> None:
        self.buf[at:] = b"\xff" * (len(self.buf) - at)


def _no_log(text: str) -> None:
    """The log of a restore is of no interest here."""


def _size(config: Persistence, board: str) -> int:
    if config.size:
        return config.size
    files = boards.load(board).files_kb if config.medium == "littlefs" else 0
    return files * 1024 or RAW_BYTES


def _flash(config: Persistence, size: int, snapshot: int, *, is_host: bool) -> Any:
    blocks = 2 * -(-snapshot // (config.block - 256)) + 2
    if size < blocks * config.block:
        kb = -(-blocks * config.block // 1024)
        what = "a computer's limits can hold: name a board" if is_host else "these limits can hold"
        raise BadScenario([f"persistence.size: at least {kb:,} KB for what {what}"])
    return Flash(size // config.block, config.block)
