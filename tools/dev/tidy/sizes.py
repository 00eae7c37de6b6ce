"""How long files and functions are, and how long they may be."""

from collections.abc import Iterator, Sequence

from .source import FOLDERS, Finding, Source, functions

FILE_MAX = 600
FUNCTION_MAX = 60


def check(sources: list[Source]) -> Iterator[Finding]:
    """Files and functions over their maximum."""
    for source in sources:
        if source.lines > FILE_MAX:
            what = f"{source.lines} lines, of at most {FILE_MAX}"
            yield Finding("file", source.path, what, source.lines)
        for name, lines in functions(source):
            if lines > FUNCTION_MAX:
                what = f"{lines} lines, of at most {FUNCTION_MAX}"
                yield Finding("function", f"{source.path}:{name}", what, lines)


def report(sources: list[Source], *, each: bool = False) -> Iterator[str]:
    """The lines of files and functions as a table: one row a folder, or one a file."""
    spread = f"{'median':>7}{'p90':>5}{'max':>5}"
    yield f"{'':30}{'files':>6}{'lines':>7}{spread}{'functions':>11}{spread}"
    groups = [source.path for source in sources] if each else [f"{name}/" for name in FOLDERS]
    for group in groups:
        inside = [source for source in sources if source.path.startswith(group)]
        if inside:
            yield _row(group, inside)


def _row(group: str, inside: list[Source]) -> str:
    files = [source.lines for source in inside]
    long = [lines for source in inside for _, lines in functions(source)]
    counts = f"{len(files):6}{sum(files):7}{_spread(files)}"
    return f"{group:30}{counts}{len(long):11}{_spread(long)}"


def _spread(values: Sequence[int]) -> str:
    return f"{quantile(values, 0.5):7}{quantile(values, 0.9):5}{max(values, default=0):5}"


def quantile(values: Sequence[int], part: float) -> int:
    """The smallest value that so large a part of them does not exceed."""
    ranked = sorted(values)
    return ranked[max(0, -(-int(len(ranked) * part * 1000) // 1000) - 1)] if ranked else 0
