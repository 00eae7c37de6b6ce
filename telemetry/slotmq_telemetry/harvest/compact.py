"""`slotmq harvest --compact`: merges small bundles into bundles of 8 to 32 MB.

Of a segment that was harvested twice the fullest copy stays. New lines are appended to the
manifest; an old line stays, empty, since line numbers are offsets of streams. A bundle of which
nothing is needed is removed; one that is needed in part is rewritten if that frees enough.

A line has one time of harvest: the latest of the merged ones. Nothing was recorded later, so no
anchor is rejected that was accepted before. Bundles of similar times are merged, so that the time
of harvest hardly grows.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

from .damage import Damage, check
from .manifest import Copy, Key, Line, Manifest
from .store import Writer, sweep

MEGABYTE = 1 << 20
LEAST, MOST = 8 * MEGABYTE, 32 * MEGABYTE
_POOR = 4  # a large bundle is written anew where one in so many of its segments is superseded
Needed = dict[int, dict[Key, Copy]]  # by the number of the line that has them


def compact(
    manifest: Manifest, done: Callable[[float], None], least: int = LEAST, most: int = MOST
) -> tuple[int, int]:
    """-> how many bundles went, and how many came. Less than `least` bytes stay as they are, if
    not half of them are superseded. ToolError: a bundle that takes part was changed."""
    sweep(manifest)
    damage = Damage(manifest)
    copies, needed = damage.copies(), Needed()
    for key, copy in copies.items():
        needed.setdefault(copy.line.line, {})[key] = copy
    gone: list[Line] = []
    some: list[Line] = []
    for line in (line for line in manifest.filled(manifest.lines()) if line.segments):
        if damage.is_lost(line):
            gone += [] if damage.lacking(line) else [line]
        elif line.size < least or _is_poor(line, needed):
            (some if line.line in needed else gone).append(line)
    fresh: list[Line] = []
    keys = {segment.key for line in (*some, *gone) for segment in line.segments}
    for line in {copies[key].line.line: copies[key].line for key in keys}.values():
        check(manifest.folder, line)
    for size in sorted({line.segment_size for line in some}):
        old = [line for line in some if line.segment_size == size]
        wanted = {key: copy for line in old for key, copy in needed[line.line].items()}
        if _is_worth_it(sum(line.size for line in old), len(wanted) * size, least):
            gone += old
            fresh += _bundles(manifest, wanted, size, most, done)
    if gone:
        _replace(manifest, gone, fresh)
    return len(gone), len(fresh)


def _is_poor(line: Line, needed: Needed) -> bool:
    count = len(line.segments)
    return (count - len(needed.get(line.line, ()))) * _POOR >= count


def _is_worth_it(size: int, wanted: int, least: int) -> bool:
    superseded = size - wanted
    return wanted >= least or superseded >= least or superseded * 2 >= size


def _replace(manifest: Manifest, gone: list[Line], fresh: list[Line]) -> None:
    """New lines behind the old ones, which lose their bundles."""
    source = f"now in {', '.join(line.path for line in fresh)}" if fresh else "superseded"
    manifest.replace(gone, fresh, source)
    still = {line.path for line in manifest.lines()}
    for path in {line.path for line in gone} - still:
        (manifest.folder / path).unlink(missing_ok=True)


def _bundles(
    manifest: Manifest, wanted: dict[Key, Copy], size: int, most: int,
    done: Callable[[float], None],
) -> Iterator[Line]:  # fmt: skip
    """Equal shares, so that none is much smaller than the others."""
    keys = sorted(wanted, key=lambda key: (wanted[key].line.harvested, key))
    count = -(-len(keys) * size // most)
    bounds = [len(keys) * part // count for part in range(count + 1)]
    for begin, end in pairwise(bounds):
        yield _bundle(manifest, {key: wanted[key] for key in sorted(keys[begin:end])}, size)
        done(100 * end / len(keys))


def _bundle(manifest: Manifest, wanted: dict[Key, Copy], size: int) -> Line:
    writer = Writer(manifest.folder)
    latest = max(copy.line.harvested for copy in wanted.values())
    line = Line("", 0, "", size, latest, "compacted")
    for copy in wanted.values():
        with (manifest.folder / copy.line.path).open("rb") as file:
            file.seek(copy.index * size)
            writer.write(file.read(size))
        line.segments.append(copy.segment)
    line.path, line.size, line.sha256 = writer.close()
    return line
