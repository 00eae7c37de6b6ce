"""An executor of the live source: fetches pieces of a board's ring over MQTT and decodes them.

What was overwritten becomes a gap: a quarantine row of type GAP. Its payload says which records
are missing, in the layout of a board's own GAP records.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..deploy.mqtt_client import Login
from ..errors import ToolError
from ..harvest.network import Gone, Ring
from ..harvest.segments import HEADER, NotASegment, header
from . import segment as s
from .decode import Place, bad_batch, decode
from .ring_index import UNKNOWN, Gap, Piece, Renewed

_ATTEMPTS = 3
_PAUSE_S = 1.0
_LIVE = -1  # instead of a line of a manifest


class Work(NamedTuple):
    """What a task has to do."""

    address: tuple[str, int]
    board: str
    pieces: Sequence[Piece]
    gaps: Sequence[Gap | Renewed]


class Away(ToolError):
    """A planned batch cannot be read now; it stays planned until its board is back."""


def frames(work: Work, login: Login) -> Iterator[Any]:
    """Arrow batches of one task. A broken connection is opened again."""
    yield from (_row(work, gap) for gap in work.gaps)
    ring: Ring | None = None
    try:
        for piece in work.pieces:
            for attempt in range(_ATTEMPTS):
                try:
                    ring = ring or Ring(work.address, login)
                    data = _fetched(ring, work.board, piece)
                    break
                except ToolError as error:
                    if ring is not None:
                        ring.close()
                    ring = None
                    if attempt == _ATTEMPTS - 1:
                        raise Away(str(error)) from None
                    time.sleep(_PAUSE_S)
            yield from _frames(work, piece, data)
    finally:
        if ring is not None:
            ring.close()


def _fetched(ring: Ring, board: str, piece: Piece) -> bytes | None:
    """The segment as it is now, or of it what is wanted behind what the driver knows; None if
    another one has its number, or none."""
    part = piece.part
    try:
        if part is not None:
            beginning = ring.read(board, piece.segment, 0, HEADER.size)
            if beginning != part.before[: HEADER.size]:
                return None
            return part.before + ring.read(board, piece.segment, part.begin, part.end)
        data = ring.read(board, piece.segment, 0, None)
        return data if header(data).boot == piece.boot else None
    except (Gone, NotASegment):
        return None


def _frames(work: Work, piece: Piece, data: bytes | None) -> Iterator[pa.RecordBatch]:
    if data is None:
        lost = UNKNOWN if piece.end is None else piece.end - piece.first
        yield _row(work, Gap(piece.boot, piece.first, lost))
        return
    left_out = piece.part.begin - len(piece.part.before) if piece.part else 0
    place = Place(_source(work), _LIVE, left_out, int(time.time() * 1000))
    for batch in decode(data, len(data), place, sealed=False):
        kept = batch.filter(_wanted(batch, piece))
        if kept.num_rows:
            yield kept


def _wanted(batch: pa.RecordBatch, piece: Piece) -> Any:
    """Records of the piece; what is torn only behind the last of them, and once."""
    seq = batch.column("seq")
    inside = pc.greater_equal(seq, piece.first)
    if piece.end is not None:
        inside = pc.and_(inside, pc.less(seq, piece.end))
    return pc.fill_null(inside, piece.sealed)


def _row(work: Work, gap: Gap | Renewed) -> pa.RecordBatch:
    row = {"board": work.board, "boot": gap.boot, "type": s.GAP, "flags": 1, "line": _LIVE}
    row["file"] = _source(work)
    if isinstance(gap, Renewed):
        row["reason"] = f"made anew: boot {gap.boot} follows boot {gap.before}"
    else:
        row |= {"seq": gap.first, "reason": s.OVERWRITTEN}
        row["payload"] = s.LOSS.pack(gap.boot, gap.first, gap.lost, UNKNOWN)
    return bad_batch([row])


def _source(work: Work) -> str:
    return f"mqtt://{work.address[0]}:{work.address[1]}"
