"""`slotmq telemetry report`: gold as one HTML page. It reads the tables without Spark.

Boards are called as boards.toml in the folder of tables said when gold was made (names.py). The
values of charts are in report_series.py, findings in report_sentences.py.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from slotmq_tools import page
from slotmq_tools.errors import ToolError, count
from slotmq_tools.errors import shown as printable

from . import report_charts as charts
from . import report_sentences as said
from . import report_series as series
from .lake import Lake
from .report_tables import Choice, Tables, field_of, states

Row = dict[str, Any]
ROWS = 1000  # of a table
_HEADS = {"seconds": "how long", "usual_s": "usual pause", "same": "equal values"}
LISTED = 2  # items in a cell
LINES, QUANTITIES = 12, 24  # in a chart of lines, charts of readings


def write(lake: Lake, file: Path, choice: Choice = Choice()) -> None:  # noqa: B008
    """Write the whole page, or no file."""
    try:
        made = _Report(lake, choice)
        text = page.html(
            "Recordings of the boards", made.lines(), [*made.sections()], made.sites(),
            charts.program(),
        )  # fmt: skip
    except KeyError as error:
        text = f"no column {error}: another version wrote it; run `slotmq telemetry build`"
        raise ToolError(f"{lake.folder}: a table of gold has {text}") from None
    page.write(file, text.encode())


class _Report(Tables):
    """The sections of the page."""

    def lines(self) -> Iterator[str]:
        messages = sum(row["messages"] for row in self.boards)
        known = [row for row in self.boots if row["first"]]
        words = f"{count(len(self.boards), 'board')}, {count(messages, 'message')}"
        if known:
            first, last = min(r["first"] for r in known), max(r["last"] for r in known)
            words += f", from {said.when(first)} to {said.when(last)}"
        yield words + ". All times are in UTC."
        yield self._lost()

    def _lost(self) -> str:
        lost = sum(row["lost"] or 0 for row in self.boards)
        known = f"{count(lost, 'record')} {'is' if lost == 1 else 'are'} known to be lost."
        words = known if lost else "No record is known to be lost."
        if self.offs:
            words += (
                f" The boards began anew {count(len(self.offs), 'time')}: up to"
                " record_flush_interval (10 s unless set otherwise) before each power cut are not"
                " recorded, and nothing tells how many records that were."
            )
        return words

    def sections(self) -> Iterator[page.Section]:
        yield self._findings()
        yield self._of_boards()
        if len(self.sites()) > 1:
            yield self._of_sites()
        yield self._map()
        if self.unread:
            yield self._unread()
        yield self._readings()
        yield self._traffic()
        yield self._sensors()
        heads: tuple[str, ...] = ("board", "topic", "after", "before", "seconds", "usual_s",
                                  "restarted")  # fmt: skip
        silences = sorted(self.rows("silences"), key=lambda row: -row["seconds"])
        words = (
            "Topics without messages for much longer than usual; without an end: up to that of the"
            " recording. Restarted: the board was off or began anew meanwhile."
        )
        yield _section("Silences", words, heads, silences)
        yield self._audit()
        heads = ("board", "client", "flapping", "connects", "keep_alive_deaths", "takeovers",
                 "wills", "messages")  # fmt: skip
        rows = sorted(self.rows("sessions"), key=lambda row: -row["most_connects"])
        yield _section("Clients", "All that have connected.", heads, rows)

    def _findings(self) -> page.Section:
        last = {}
        for row in sorted(self.readings, key=lambda row: row["start"]):
            last[field_of(row)] = row["mean"]
        found = [
            *said.advice(self.boards), *said.losses(self.gaps), *said.unread(self.unread),
            *said.cuts(self.offs),
            *said.sensors(self.sensors, last), *said.silences(self.rows("silences")),
            *said.sessions(self.rows("sessions")),
        ]  # fmt: skip
        return _told("What to look at", found, "Nothing.")

    def _audit(self) -> page.Section:
        none = "No message came twice, is missing or out of order, as far as the recording tells."
        return _told("QoS audit", [*said.audit(self.rows("audit"))], none)

    def _of_boards(self) -> page.Section:
        heads = ("board", "site", "tags", "boots", "restarts", "messages", "known_lost",
                 "without_time", "least_heap", "most_connected", "refusals")  # fmt: skip
        restarts = Counter(row["board"] for row in self.offs)
        rows = [
            row | {"known_lost": row["lost"], "restarts": restarts[row["board"]]}
            for row in self.boards
        ]
        return _section("Boards", "", heads, rows)

    def _of_sites(self) -> page.Section:
        heads = ("site", "boards", "boots", "messages", "known_lost", "refusals")
        rows = []
        for site, names in self.sites().items():
            some = [row | {"known_lost": row["lost"]}
                    for row in self.boards if row["board"] in names]  # fmt: skip
            sums = {head: sum(row[head] or 0 for row in some) for head in heads[2:]}
            rows.append({"site": site or "none", "boards": len(some), "board": "", **sums})
        return _section("Sites", "", heads, rows)

    def _map(self) -> page.Section:
        words = (
            "Green: the board was up; dark where messages were recorded. Red: records are lost."
            " A grey line: off or restarted. Blue: harvested. A loss without"
            " times is only in the table."
        )
        if len(self.shown) < len(self.boards):
            words += f" The chart shows {len(self.shown)} of {len(self.boards)} boards."
        rows = [*states(self)]
        picture = []
        if rows:
            ends = [row[name] for row in rows for name in ("since", "until")]
            since, until = _margin(min(ends), max(ends))
            spec = charts.states(rows, self.shown, since, until)
            picture = [page.Chart("", spec, self.shown)]
        heads: tuple[str, ...] = ("board", "reasons", "lost", "after", "before", "seconds", "boot",
                                  "boots", "files")  # fmt: skip
        if all(row["boots"] == 1 for row in self.gaps):
            heads = tuple(head for head in heads if head != "boots")
        longest = sorted(self.gaps, key=lambda row: -(row["lost"] or 0))
        longest += sorted(self.offs, key=lambda row: -row["seconds"])
        return _section("When the boards recorded", words, heads, longest, picture)

    def _unread(self) -> page.Section:
        words = (
            "Parts of bundles that are in the table quarantine. A torn record is one under which"
            " the power went away. A bundle that is not read yet is tried again at each ingest."
        )
        heads = ("board", "reason", "pieces", "bytes", "harvested")
        return _section("What cannot be read", words, heads, self.unread)

    def _readings(self) -> page.Section:
        by_quantity: dict[series.Quantity, list[Row]] = defaultdict(list)
        shown = set(self.shown)
        for row in self.readings:
            if row["board"] in shown:
                by_quantity[row["topic"], row["field"]].append(row)
        total = {key: sum(r["count"] for r in rows) for key, rows in by_quantity.items()}
        ranked = sorted(by_quantity, key=lambda key: (-total[key], key))
        made = [self._chart(key, by_quantity[key]) for key in ranked[:QUANTITIES]]
        words = (
            "What was measured, without counters: means, with a band from minimum to maximum. A"
            " line ends where values are missing, the board was off, or records are lost. Drag"
            " over a chart to see a shorter time."
        )
        if len(ranked) > QUANTITIES:
            words += f" The {QUANTITIES} of {len(ranked)} with the most values are shown."
        return page.Section("Readings", words if made else "None.", charts=made)

    def _chart(self, quantity: series.Quantity, rows: list[Row]) -> page.Chart:
        names = sorted({row["board"] for row in rows})
        told = " ".join(printable(part) for part in quantity if part)
        if len(names) > LINES:
            names = sorted(names, key=lambda name: -sum(
                r["count"] for r in rows if r["board"] == name))[:LINES]  # fmt: skip
            told += f" ({LINES} boards)"
            rows = [row for row in rows if row["board"] in names]
        starts = [row["start"] for row in rows]
        step = max(self.step, series.step_for(max(starts) - min(starts) + self.step))
        return self._lines(told, series.merged(rows, step), step, bands=True)

    def _lines(self, title: str, rows: list[Row], step: int, *, bands: bool) -> page.Chart:
        starts = [row["start"] for row in rows]
        since, until = _margin(min(starts), max(starts) + step)
        cut = series.runs(rows, step, self.dark)
        spec = charts.lines(cut, self.shown, since, until, bands=bands)
        return page.Chart(title, spec, sorted({row["board"] for row in rows}))

    def _traffic(self) -> page.Section:
        most = sorted(self.totals(), key=lambda r: (-r["messages"], r["board"], r["topic"]))
        made = [self._busy()] if self.hours else []
        return _section("Traffic", "", ("board", "topic", "messages", "bytes"), most, made)

    def _busy(self) -> page.Chart:
        """Messages of each board."""
        sums = Counter[str]()
        for row in self.hours:
            sums[row["board"]] += row["messages"]
        names = sorted(sums, key=lambda name: (-sums[name], name))[:LINES]
        starts = [row["start"] for row in self.hours]
        step = max(self.step, series.step_for(max(starts) - min(starts) + self.step))
        stepped = Counter[tuple[str, int]]()
        for row in self.hours:
            if row["board"] in names:
                stepped[row["board"], row["start"] // step * step] += row["messages"]
        rows = [{"board": board, "start": start, "mean": number}
                for (board, start), number in stepped.items()]  # fmt: skip
        return self._lines(f"messages in {said.lasted(step / 1000)}", rows, step, bands=False)

    def _sensors(self) -> page.Section:
        heads = ("board", "topic", "field", "count", "drifts", "drift_per_day", "flat", "same",
                 "same_since", "counter")  # fmt: skip
        told = [row if row["drifts"] else row | {"drift_per_day": None} for row in self.sensors]
        rows = sorted(told, key=lambda r: (
            not (r["drifts"] or (r["flat"] and not r["counter"])), r["board"], r["topic"]
        ))  # fmt: skip
        words = (
            "Numeric fields. Flat: the value no longer changes. A counter neither drifts nor"
            " stands still."
        )
        return _section("Sensors", words, heads, rows)


def _margin(since: int, until: int) -> tuple[int, int]:
    """With a little air, so that what is short has a width."""
    air = max((until - since) // 50, 1000)
    return since - air, until + air


def _told(title: str, found: Sequence[said.Said], none: str) -> page.Section:
    some = found[:ROWS]
    return page.Section(
        title, "" if found else none, sentences=[words for _, words in some],
        whose=[whose for whose, _ in some], more=len(found) - len(some),
    )  # fmt: skip


def _section(
    title: str, words: str, heads: Sequence[str], rows: Sequence[Row],
    made: Sequence[page.Chart] = (),
) -> page.Section:  # fmt: skip
    some = rows[:ROWS]
    heads = [head for head in heads if not some or any(shown(row[head]) for row in some)]
    cells = [[_cell(head, row[head]) for head in heads] for row in some]
    heads = [_HEADS.get(head, head.replace("_", " ")) for head in heads]
    return page.Section(
        title, words, charts=made, heads=heads, rows=cells,
        whose=[[row["board"]] if row["board"] else [] for row in some], more=len(rows) - len(some),
    )  # fmt: skip


def _cell(head: str, value: Any) -> str:
    return said.lasted(value) if value and head in ("seconds", "usual_s") else shown(value)


def shown(value: Any) -> str:
    """The text of a cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        few = len(value) if len(value) <= LISTED + 1 else LISTED
        others = f" and {len(value) - few:,} others" if few < len(value) else ""
        return ", ".join(printable(each) for each in value[:few]) + others
    if isinstance(value, float):
        return said.number(value)
    if isinstance(value, int):
        return f"{value:,}"
    return (
        f"{value:%Y-%m-%d\N{NO-BREAK SPACE}%H:%M:%S}"
        if hasattr(value, "strftime")
        else printable(value)
    )
