"""`slotmq harvest --compact`: many small bundles become few of 8 to 32 MB.

What was harvested twice is kept once. New lines go behind the old ones, and an old
one stays as an empty line, since line numbers are offsets of streams.

A line has one time of harvest, which is the latest of what was merged: what is recorded is
never later than that, and no anchor is disbelieved that was not before. Neighbours in time
go together, so that it is not much later than it was either.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

from .manifest import Copy, Key, Line, Manifest
from .store import Writer, check, sweep

MEGABYTE = 1 << 20
LEAST, MOST = 8 * MEGABYTE, 32 * MEGABYTE


def compact(
    manifest: Manifest, done: Callable[[float], None], least: int = LEAST, most: int = MOST
) -> tuple[int, int]:
    """-> how many bundles went, and how many came. Less than `least` bytes stay as they are, and
    so does a bundle in which not every segment lies where its number says."""
    sweep(manifest)
    small = [line for line in manifest.lines
             if line.segments and line.size < least and line.is_even]  # fmt: skip
    for line in small:
        check(manifest.folder, line)
    copies = manifest.copies()
    gone: list[Line] = []
    fresh: list[Line] = []
    for size in sorted({line.segment_size for line in small}):
        old = [line for line in small if line.segment_size == size]
        wanted = {key: copy for key, copy in copies.items() if copy.line in old}
        if len(wanted) * size >= least:
            gone += old
            fresh += _bundles(manifest, wanted, size, most, done)
    if gone:
        source = ", ".join(line.path for line in fresh)
        kept = [line.compacted(f"now in {source}") if line in gone else line
                for line in manifest.lines]  # fmt: skip
        manifest.replace([*kept, *fresh])
        still = {line.path for line in manifest.lines}
        for path in {line.path for line in gone} - still:
            (manifest.folder / path).unlink()
    return len(gone), len(fresh)


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
    line = Line("", 0, "", size, [], latest, "compacted")
    for key, copy in wanted.items():
        with (manifest.folder / copy.line.path).open("rb") as file:
            file.seek(copy.index * size)
            writer.write(file.read(size))
        line.segments.append(copy.line.segments[copy.index])
        if copy.grown is not None:
            line.growing.append([*key, copy.grown])
    line.path, line.size, line.sha256 = writer.close()
    return line
