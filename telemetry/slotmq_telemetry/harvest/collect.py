"""The steps of a harvest, for each of the three sources: find what is new, fetch it, verify it,
write the bundle.

A board that does not answer does not keep other boards from their bundle; it is named at the end.
A board is changed only after the bundle and its manifest line are on this disk and were read back.
A segment with a wrong CRC is fetched once more. If it is wrong again, the flash is damaged: the
segment is stored as it is, and the pipeline puts the damaged record into quarantine.
"""

from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from slotmq_tools.errors import ToolError

from .copies import Copies
from .damage import check
from .manifest import Copy, Key, Line
from .network import NOBODY, Gone, Head, Ring
from .plan import Plan, plan
from .segments import Header, NotASegment, scan
from .store import Store, same_segment
from .usb import Files

_IN_VAIN = 1024  # so many segments in a row that are not there are an end
Done = Callable[[float], None]
Fetch = Callable[[int], Iterable[bytes]]  # the bytes of a segment from this offset on


@dataclass
class Report:
    """The result of a harvest."""

    gone: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # what exists and was not fetched
    silent: set[str] = field(default_factory=set)  # boards
    lines: list[Line] = field(default_factory=list)


def over_network(
    ring: Ring, only: Iterable[str], store: Store, source: str, done: Done, *,
    skip: Set[str] = frozenset(), open_ones: bool = True,
) -> Report:  # fmt: skip
    """Every board of a broker, or only those in `only`; boards with little to fetch come first.

    Boards in `skip` are left out. Without `open_ones` the segments that boards are still writing
    wait in partial/ for the rest of them.
    """
    heads = [head for head in _chosen(ring.heads(), set(only)) if head.board not in skip]
    silent = ring.silent(heads) if len(heads) > 1 else {}
    report = Report(missing=list(silent.values()), silent=set(silent))
    plans: list[Plan] = []
    for head in (head for head in heads if head.board not in silent):
        with _going_on(head.board, report):
            plans.append(plan(ring, head, store))
    size = sum(each.head.size * len(each) for each in plans) or 1
    so_far = 0.0
    for each in sorted(plans, key=len):
        with _going_on(each.head.board, report):
            for number in each:
                _fetch(ring, each, number, store, report)
                so_far += each.head.size / size * 100
                done(so_far)
    _bundle(store, source, report, open_ones=open_ones)
    return report


@contextmanager
def _going_on(board: str, report: Report) -> Iterator[None]:
    """If this board fails, note it and go on with the other boards."""
    try:
        yield
    except ToolError as error:
        text = str(error)
        report.missing.append(text if board in text else f"board {board}: {text}")
        report.silent.add(board)


def _fetch(ring: Ring, wanted: Plan, number: int, store: Store, report: Report) -> None:
    which = f"board {wanted.head.board}: segment {number}"
    try:
        segment = wanted.header(number)
        data = _from_ring(ring, wanted, segment, store)
    except Gone:
        report.gone.append(f"{which} was overwritten")
        wanted.in_vain += 1
    except NotASegment as error:
        report.bad.append(f"{which}: {error}")
        wanted.in_vain += 1
    else:
        wanted.in_vain = 0
        if data is not None:
            _keep(store, data, wanted.grows(segment), report)
    if wanted.in_vain == _IN_VAIN:
        raise ToolError(f"{which} and {_IN_VAIN - 1} before it are not there: harvest again")


def from_files(
    files: Files | Copies, store: Store, source: str, done: Done, *, delete: bool = False
) -> Report:
    """The segment files of the board on a serial line, whose broker is stopped meanwhile; or
    those that were copied by hand, which stay unchanged. `delete` removes a board's sealed
    segments once they are safe. The newest stays, since the board continues its numbers."""
    there = files.headers()
    report = Report(bad=[*files.refused], missing=[*files.unread])
    for number, each in enumerate(there, 1):
        copy = store.damage.copy((each.board, each.boot, each.segment))
        if files.is_new(each, copy):
            data = _whole(store, each, _begun(store, each), partial(files.fetch, each))
            _keep(store, data, growing=files.grows(each), report=report)
        done(number / len(there) * 100)
    _bundle(store, source, report)
    if delete and isinstance(files, Files):
        _delete(files, there[:-1], store, report)
    return report


def _chosen(heads: dict[str, Head], only: set[str]) -> list[Head]:
    if missing := only - heads.keys():
        raise ToolError(f"there is no board {', '.join(sorted(missing))} behind this broker")
    if not heads:
        raise ToolError(NOBODY)
    return [heads[board] for board in sorted(heads) if not only or board in only]


def _from_ring(ring: Ring, wanted: Plan, segment: Header, store: Store) -> bytes | None:
    """A segment; None if nothing in it is new."""
    board, number = segment.board, segment.segment
    growing = wanted.grows(segment)
    end = wanted.length(segment) if growing else None
    begun = _begun(store, segment)
    key: Key = (board, segment.boot, number)
    copy = store.damage.copy(key)
    if copy is not None and (copy.grown is None or (end is not None and copy.grown >= end)):
        return None
    there = store.open(key)
    if there is not None and end is not None and len(there) >= end:
        return None
    data = _whole(store, segment, begun, lambda at: ring.fetch(board, number, at, end))
    is_same = (copy is not None and copy.grown == len(data)) or data == there
    if growing and is_same:
        store.piece(board, number).unlink()
        return None
    return data


def _begun(store: Store, segment: Header) -> bytes:
    """What is here of this segment already: a piece in partial/, or a copy in a bundle."""
    path = store.piece(segment.board, segment.segment)
    piece = path.read_bytes() if path.exists() else None
    key: Key = (segment.board, segment.boot, segment.segment)
    there = (piece, store.known(key), store.open(key))
    return max((one for one in there if one and same_segment(one, segment)), key=len, default=b"")


def _whole(store: Store, segment: Header, begun: bytes, fetch: Fetch) -> bytes:
    """The whole segment: what was begun and the rest. With a wrong CRC it is fetched once more."""
    data = _gathered(store, segment, begun, fetch)
    found = scan(data)
    if not found.torn or found.cut:
        return data
    again = _gathered(store, segment, b"", fetch)
    return max(data, again, key=lambda each: scan(each).end)


def _gathered(store: Store, segment: Header, begun: bytes, fetch: Fetch) -> bytes:
    path = store.piece(segment.board, segment.segment)
    path.write_bytes(begun)
    with path.open("ab") as file:
        for piece in fetch(len(begun)):
            file.write(piece)
            file.flush()
            if file.tell() > segment.size:
                break  # whatever the board says that there is
    return path.read_bytes()


def _keep(store: Store, data: bytes, growing: bool, report: Report) -> None:
    found = store.keep(data, growing=growing).scan
    which = f"board {found.header.board}: segment {found.header.segment}"
    if len(data) > found.header.size:  # a fault of a recorder
        told = f"it has more than the {found.header.size} bytes that its header says"
        report.missing.append(f"{which}: {told}: the rest is not in the bundle")
    elif found.torn and not (growing and found.cut):  # the rest of the record comes later
        report.bad.append(f"{which}: {'torn' if found.cut else 'damaged'} at byte {found.end}")


def _bundle(store: Store, source: str, report: Report, *, open_ones: bool = True) -> None:
    """Write the bundle, and report what damaged bundles on this disk still lack."""
    report.lines = store.bundle(source, open_ones=open_ones)
    report.missing += store.damage.complaints()


def _is_safe(files: Files, segment: Header, copy: Copy, store: Store) -> bool:
    """Does the bundle contain all that the file has, if the bundle is sound?"""
    if copy.grown is not None:
        return False
    here = store.held(copy)
    return here is None or not files.has_more(segment, here)


def _delete(files: Files, there: list[Header], store: Store, report: Report) -> None:
    """Delete the segments whose bundle was read back; name those that stay on the board."""
    safe: dict[str, list[Header]] = {}  # by the paths of their bundles
    for each in there:
        copy = store.damage.copy((each.board, each.boot, each.segment))
        if copy is not None and _is_safe(files, each, copy, store):
            safe.setdefault(copy.line.path, []).append(each)
        else:
            path = files.paths[each][0]
            report.missing.append(f"{path}: stays on the board: its bundle lacks a part of it")
    for line in store.manifest.lines():
        if line.path in safe:
            try:
                check(store.folder, line)
            except ToolError as error:
                count = len(safe.pop(line.path))
                report.missing.append(
                    f"{error}; move it away: the board still has {count} of its segments"
                )
    files.remove([each for segments in safe.values() for each in segments])
