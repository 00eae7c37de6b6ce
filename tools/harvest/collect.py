"""A harvest: what is new on a board, fetched, verified, and made into a bundle.

A board that is silent, or of which only a head is there that anybody may have published, keeps
none of the others from their bundle: it is named at the end.

Boards are never changed before the bundle and its line are on this disk and were read
back. What comes with a wrong CRC is fetched once more; if it is wrong again it is so on
the flash, and is kept as it is, for the pipeline to name.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..errors import ToolError
from .copies import Copies
from .damage import check
from .manifest import Copy, Key, Line
from .network import NOBODY, Gone, Head, Ring
from .plan import Plan, plan
from .segments import Header, NotASegment, beyond, scan
from .store import Store, same_segment
from .usb import Files

Done = Callable[[float], None]
Fetch = Callable[[int], Iterable[bytes]]  # the bytes of a segment from this offset on


@dataclass
class Report:
    """What came of it."""

    fetched: int = 0  # segments
    gone: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # what is there and was not got
    silent: set[str] = field(default_factory=set)  # boards
    lines: list[Line] = field(default_factory=list)


def over_network(ring: Ring, only: Iterable[str], store: Store, source: str, done: Done) -> Report:
    """Every board of a broker, or only those; one that has much comes behind those with less."""
    heads = _chosen(ring.heads(), set(only))
    silent = ring.silent(heads) if len(heads) > 1 else {}
    report = Report(missing=list(silent.values()), silent=set(silent))
    wanted: list[tuple[Plan, int]] = []
    for head in (head for head in heads if head.board not in silent):
        with _going_on(head.board, report):
            wanted += _planned(ring, head, store, report)
    size = sum(each.head.size for each, _ in wanted) or 1
    so_far = 0.0
    for each, number in sorted(wanted, key=lambda one: len(one[0].numbers)):
        if each.head.board not in report.silent:
            with _going_on(each.head.board, report):
                _fetch(ring, each, number, store, report)
        so_far += each.head.size / size * 100
        done(so_far)
    _bundle(store, source, report)
    return report


@contextmanager
def _going_on(board: str, report: Report) -> Iterator[None]:
    """With the other boards, if this one fails."""
    try:
        yield
    except ToolError as error:
        told = str(error)
        report.missing.append(told if board in told else f"board {board}: {told}")
        report.silent.add(board)


def _planned(ring: Ring, head: Head, store: Store, report: Report) -> Iterator[tuple[Plan, int]]:
    """What is to be fetched of a board, and a line where its head is not true."""
    found = plan(ring, head, store)
    (report.missing if found.empty else report.gone).extend(found.told)
    for number in found.numbers:
        yield found, number


def _fetch(ring: Ring, wanted: Plan, number: int, store: Store, report: Report) -> None:
    which = f"board {wanted.head.board}: segment {number}"
    try:
        segment = wanted.asked.header(number)
        data = _from_ring(ring, wanted, segment, store)
    except Gone:
        report.gone.append(f"{which} was overwritten")
    except NotASegment as error:
        report.bad.append(f"{which}: {error}")
    else:
        if data is not None:
            _keep(store, data, wanted.grows(segment), report)


def over_usb(files: Files, store: Store, source: str, done: Done, *, delete: bool) -> Report:
    """The board on a serial line, which nobody writes to meanwhile; with `delete` its
    sealed segments go when they are safe. The newest stays: the board counts on from it."""
    report = Report()
    there = files.headers()
    _fetch_files(files, there, store, report, done)
    _bundle(store, source, report)
    if delete:
        _delete(files, there[:-1], store, report)
    return report


def from_copies(files: Copies, store: Store, source: str, done: Done) -> Report:
    """What was copied by hand, in the same way; the files stay as they are."""
    report = Report()
    _fetch_files(files, files.headers(), store, report, done)
    report.missing += files.unread
    _bundle(store, source, report)
    return report


def _fetch_files(
    files: Files | Copies, there: list[Header], store: Store, report: Report, done: Done
) -> None:
    report.bad += files.refused
    for board in {each.board for each in there}:
        store.damage.doubt(board, {each.segment for each in there})
    copies = store.damage.copies()
    for count, each in enumerate(there):
        copy = copies.get((each.board, each.boot, each.segment))
        if files.is_new(each, copy, store.held):
            begun = _begun(store, each)
            data = _whole(store, each, begun, lambda at, one=each: files.fetch(one, at))  # type: ignore[misc]
            _keep(store, data, growing=files.grows(each), report=report)
        done((count + 1) / len(there) * 100)


def _chosen(heads: dict[str, Head], only: set[str]) -> list[Head]:
    if missing := only - heads.keys():
        raise ToolError(f"there is no board {', '.join(sorted(missing))} behind this broker")
    if not heads:
        raise ToolError(NOBODY)
    return [heads[board] for board in sorted(heads) if not only or board in only]


def _from_ring(ring: Ring, wanted: Plan, segment: Header, store: Store) -> bytes | None:
    """A segment; None where there is nothing new in it."""
    board, number = segment.board, segment.segment
    growing = wanted.grows(segment)
    end = wanted.length(segment) if growing else None
    begun = _begun(store, segment)
    key: Key = (board, segment.boot, number)
    copy = store.damage.copies().get(key)
    if copy is not None and (copy.grown is None or (end is not None and copy.grown >= end)):
        return None
    data = _whole(store, segment, begun, lambda at: ring.fetch(board, number, at, end))
    is_same = copy is not None and copy.grown == len(data)
    if growing and (is_same or store.has_damage(key, data)):
        store.piece(board, number).unlink()
        return None
    return data


def _begun(store: Store, segment: Header) -> bytes:
    """What is here already of this very segment: a piece, or what a bundle has."""
    path = store.piece(segment.board, segment.segment)
    piece = path.read_bytes() if path.exists() else b""
    if not (piece and same_segment(piece, segment)):
        path.unlink(missing_ok=True)
        piece = b""
    known = store.known((segment.board, segment.boot, segment.segment)) or b""
    return max(piece, known, key=len)


def _whole(store: Store, segment: Header, begun: bytes, fetch: Fetch) -> bytes:
    """All of it: what was begun and what is fetched; fetched anew where a CRC is wrong, but
    for a damage that a bundle has just so."""
    data = _gathered(store, segment, begun, fetch)
    found = scan(data)
    key: Key = (segment.board, segment.boot, segment.segment)
    if not found.torn or found.cut or store.has_damage(key, data):
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
    return path.read_bytes()


def _keep(store: Store, data: bytes, growing: bool, report: Report) -> None:
    found = store.keep(data, growing=growing).scan
    report.fetched += 1
    which = f"board {found.header.board}: segment {found.header.segment}"
    if told := beyond(data):
        report.missing.append(f"{which}: {told}")
    elif found.torn and not (growing and found.cut):  # what is half there comes later
        report.bad.append(f"{which}: torn at byte {found.end}")


def _bundle(store: Store, source: str, report: Report) -> None:
    """What came; and what is still lacking of bundles that were damaged on this disk."""
    report.lines = store.bundle(source)
    for told, lacking in store.damage.told():
        (report.missing if lacking else report.bad).append(told)


def _is_safe(files: Files, segment: Header, copy: Copy, store: Store) -> bool:
    """Is all that a file has in its bundle, if that is what was harvested?"""
    if copy.grown is not None:
        return False
    here = store.held(copy)
    return here is None or not files.has_more(segment, here)


def _delete(files: Files, there: list[Header], store: Store, report: Report) -> None:
    """What lies in bundles that were read back; what does not stays, and is told."""
    copies = store.damage.copies()
    safe: dict[str, list[Header]] = {}  # by the paths of their bundles
    for each in there:
        copy = copies.get((each.board, each.boot, each.segment))
        if copy is not None and _is_safe(files, each, copy, store):
            safe.setdefault(copy.line.path, []).append(each)
        else:
            path = files.paths[each][0]
            report.missing.append(f"{path}: stays on the board, as its bundle has not all of it")
    for line in store.manifest.lines:
        if line.path in safe:
            try:
                check(store.folder, line)
            except ToolError as error:
                count = len(safe.pop(line.path))
                report.missing.append(
                    f"{error}; move it away: {count} of its segments are on the board"
                )
    files.remove([each for segments in safe.values() for each in segments])
