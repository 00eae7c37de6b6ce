"""The rows that gold must have, calculated in plain Python from the true rows of silver."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import groupby, pairwise
from math import floor, isfinite
from statistics import median
from sys import float_info
from typing import Any

Row = dict[str, Any]
Silver = Callable[[str], list[Row]]  # the true rows of a table
HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US

KEYS = {
    "traffic": ("board", "topic", "start_us"),
    "readings": ("board", "topic", "field", "start_us"),
    "silences": ("board", "topic", "before_us"),
    "gaps": ("board", "boot", "first_seq"),
    "sensors": ("board", "topic", "field"),
    "audit": ("board", "boot", "seq"),
    "sessions": ("board", "client"),
    "boots": ("board", "boot"),
    "boards": ("board",),
}


def by(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows with the same values in these columns, in their order."""
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in names)].append(row)
    return found


def is_timed(row: Row) -> bool:
    """Known to the hour."""
    return row["wall_us"] is not None and row["wall_error_us"] <= HOUR_US


def timed(silver: Silver) -> list[Row]:
    """Own messages, and those that only other boards have recorded, each once."""
    found = {(row["board"], row["boot"], row["seq"]): row for row in silver("messages")}
    for row in sorted(silver("bridged"), key=lambda r: (r["recorder"], r["recorder_boot"],
                                                        r["recorder_seq"])):  # fmt: skip
        found.setdefault((row["board"], row["boot"], row["seq"]), row)
    rows = [row for row in found.values() if is_timed(row)]
    return [row | {"start_us": row["wall_us"] // HOUR_US * HOUR_US} for row in rows]


def traffic(silver: Silver) -> Iterator[Row]:
    for (board, topic, start), rows in by(timed(silver), "board", "topic", "start_us").items():
        yield {
            "board": board, "topic": topic, "start_us": start, "messages": len(rows),
            "bytes": sum(len(row["payload"]) for row in rows),
            "acknowledged": sum(row["qos"] > 0 for row in rows),
            "retained": sum(row["retain"] for row in rows),
            "rate": len(rows) / 3600.0,
        }  # fmt: skip


def values(silver: Silver) -> Iterator[Row]:
    """A row a number: what a payload is, or the fields of an object."""
    for row in timed(silver):
        told = {"": row["number"]} if row["number"] is not None else json.loads(row["json"] or "0")
        for field, value in told.items() if isinstance(told, dict) else ():
            number = finite(value)
            if number is not None:
                yield row | {"field": field, "value": number}


def finite(value: Any) -> float | None:
    """A number that JSON has as such or in quotes, if a double can hold it."""
    if isinstance(value, str) and set(value) <= set("+-.0123456789eE"):
        with suppress(ValueError):
            value = float(value)
    fits = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    return float(value) if fits else None


def readings(silver: Silver) -> Iterator[Row]:
    for key, rows in by(values(silver), *KEYS["readings"]).items():
        numbers = sorted(row["value"] for row in rows)
        yield {
            **dict(zip(KEYS["readings"], key, strict=True)), "count": len(numbers),
            "min": numbers[0], "max": numbers[-1],
            "mean": float(sum(map(Fraction, numbers)) / len(numbers)),
            "p10": part(numbers, 1, 10), "p50": part(numbers, 1, 2), "p90": part(numbers, 9, 10),
            "rate": len(numbers) / 3600.0,
        }  # fmt: skip


def part(numbers: list[float], over: int, under: int) -> float:
    """The percentile that lies between the two nearest."""
    place = Fraction((len(numbers) - 1) * over, under)
    low, high = numbers[floor(place)], numbers[-(-place.numerator // place.denominator)]
    return float(Fraction(low) + (Fraction(high) - Fraction(low)) * (place - floor(place)))


def silences(silver: Silver) -> Iterator[Row]:
    gone = by(silver("losses"), "board")
    untimed = by((r for r in silver("messages") if not is_timed(r)), "board", "topic")
    known = [row for row in silver("messages") if is_timed(row)]
    for (board, topic), rows in by(known, "board", "topic").items():
        rows.sort(key=lambda row: (row["wall_us"], row["boot"], row["seq"]))
        steps = [(b["wall_us"] - a["wall_us"], a, b) for a, b in pairwise(rows)]
        usual = median(us / 1e6 for us, _, _ in steps) if steps else 0
        for us, a, b in steps:
            low, high = sorted((row["boot"], row["seq"]) for row in (a, b))
            inside = [(row["boot"], row["first_seq"]) for row in gone[(board,)]]
            inside += [(row["boot"], row["seq"]) for row in untimed[board, topic]]
            if any(low < one < high for one in inside):
                continue
            if len(rows) >= 5 and us > 60_000_000 and us / 1e6 > usual * 5:
                yield {
                    "board": board, "topic": topic, "after_us": a["wall_us"],
                    "before_us": b["wall_us"], "seconds": us / 1e6, "usual_s": usual,
                    "restarted": a["boot"] != b["boot"],
                }  # fmt: skip


def gaps(silver: Silver) -> Iterator[Row]:
    for row in silver("losses"):
        known = row["after_us"] is not None and row["before_us"] is not None
        found = row | {"files": [f"{number:08x}.seg" for number in row["segments"]]}
        del found["segments"]
        yield found | {"seconds": (row["before_us"] - row["after_us"]) / 1e6 if known else None}


def sensors(silver: Silver) -> Iterator[Row]:
    for (board, topic, field), rows in by(values(silver), *KEYS["sensors"]).items():
        rows.sort(key=lambda row: (row["wall_us"], row["boot"], row["seq"]))
        *_, last = (list(run) for _, run in groupby(rows, key=lambda row: row["value"]))
        first, end, since = rows[0]["wall_us"], rows[-1]["wall_us"], last[0]["wall_us"]
        slope, fits = line(rows)
        counter = field == "n" or counts([row["value"] for row in rows])
        yield {
            "board": board, "topic": topic, "field": field, "count": len(rows),
            "first_us": first, "last_us": end,
            "drift_per_day": slope, "drift_r2": fits, "same": len(last), "same_since_us": since,
            "flat": len(last) >= 10 and end - since >= HOUR_US, "counter": counter,
            "drifts": not counter and len(rows) >= 20 and end - first >= 6 * HOUR_US
            and bool(slope)
            and fits is not None and fits >= 0.7,
        }  # fmt: skip


def counts(values: list[float]) -> bool:
    """Whole numbers that mostly rise, and fall only to begin anew."""
    steps = [(b - a, b) for a, b in pairwise(values)]
    return (
        len(values) >= 5
        and all(value == floor(value) for value in values)
        and sum(step > 0 for step, _ in steps) * 2 > len(values)
        and not any(step < 0 and value not in (0, 1) for step, value in steps)
    )


def line(rows: list[Row]) -> tuple[float | None, float | None]:
    """Slope a day and r² of the line that fits best."""
    xs = [Fraction(row["wall_us"], DAY_US) for row in rows]
    ys = [Fraction(row["value"]) for row in rows]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    xx, yy = sum((each - x) ** 2 for each in xs), sum((each - y) ** 2 for each in ys)
    xy = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True))
    if not xx:
        return None, None
    slope = Fraction(xy / xx)
    fits = float(xy**2 / (xx * yy)) if yy else 1.0
    return (float(slope) if abs(slope) <= float_info.max else None), fits


def audit(silver: Silver) -> Iterator[Row]:
    own = [r for r in silver("messages") if r["client"] is not None]
    holes = by(silver("losses"), "board", "boot")
    for (board, boot, *_), rows in by(own, "board", "boot", "client", "topic").items():
        rows.sort(key=lambda row: row["seq"])
        missing = [row["first_seq"] for row in holes[board, boot]]
        for a, b in pairwise(rows):
            found = finding(a, b, any(a["seq"] < hole < b["seq"] for hole in missing))
            if found:
                names = ("board", "boot", "seq", "client", "topic", "wall_us")
                yield {name: b[name] for name in names} | {
                    "before_seq": a["seq"], "counter": counter(b),
                    "finding": found[0], "messages": found[1],
                }  # fmt: skip


def counter(row: Row) -> int | None:
    told = json.loads(row["json"] or "null")
    return told.get("n") if isinstance(told, dict) else None


def finding(a: Row, b: Row, has_hole: bool) -> tuple[str, int] | None:
    """What two messages, one after the other, say of their client."""
    before, now = counter(a), counter(b)
    is_same = a["qos"] == b["qos"] == 2 and a["payload"] == b["payload"]
    if is_same and (b["dup"] or now is not None):
        return "twice", 1
    if before is None or now is None:
        return None
    if now < before and now > 1:
        return "order broken", 1
    certain = a["qos"] > 0 and b["qos"] > 0 and not has_hole
    return ("lost", now - before - 1) if now > before + 1 and certain else None


def sessions(silver: Silver) -> Iterator[Row]:
    sent = by(silver("messages"), "board", "client")
    of_client = (row for row in silver("events") if row["client"] is not None)
    for (board, client), rows in by(of_client, "board", "client").items():
        names = [row["event"] for row in rows]
        came = [
            ((r["boot"], r["stretch"]), r["uptime_ms"]) for r in rows if r["event"] == "connect"
        ]
        most = max(
            (sum(here == b and 0 <= at - ms < 600_000 for b, ms in came) for here, at in came),
            default=0,
        )
        dead = sum(row["event"] == "disconnect" and row["code"] == 8 for row in rows)
        yield {
            "board": board, "client": client, "connects": names.count("connect"),
            "disconnects": names.count("disconnect"), "keep_alive_deaths": dead,
            "takeovers": names.count("takeover"), "wills": names.count("will"),
            "most_connects": most, "flapping": most >= 5, "messages": len(sent[board, client]),
        }  # fmt: skip


def boards(silver: Silver) -> Iterator[Row]:
    tables = [by(silver(name), "board") for name in ("messages", "events", "losses", "anchors")]
    for key in {key for table in tables for key in table}:
        messages, events, losses, anchors = (table.get(key, []) for table in tables)
        known = [row for row in messages if is_timed(row)]
        full = [row["detail"] for row in events if row["event"] == "table full"]
        heaps = [row["heap_bytes"] for row in events if row["event"] == "heap low-water"]
        wrong = sum(not row["believed"] for row in anchors)
        row = {
            "board": key[0], "name": key[0], "site": None, "tags": [], "messages": len(messages),
            "first_us": min((row["wall_us"] for row in known), default=None),
            "last_us": max((row["wall_us"] for row in known), default=None),
            "boots": sum(row["event"] == "boot" for row in events),
            "without_time": sum(not is_timed(row) for row in messages),
            "worst_error_us": max(
                (r["wall_error_us"] for r in messages if r["wall_us"] is not None), default=None
            ),
            "conflicts": 0, "lost": sum(row["lost"] or 0 for row in losses),
            "reasons": sorted({reason for row in losses for reason in row["reasons"]}),
            "anchors": len(anchors), "wrong_anchors": wrong,
            "least_heap": min(heaps, default=None), "refusals": len(full),
            "most_connected": most_connected(events, losses),
            "full": sorted(set(full)),
        }  # fmt: skip
        yield row | {"advice": list(advice(row))}


def boots(silver: Silver) -> Iterator[Row]:
    every = [*silver("messages"), *silver("events")]
    for (board, boot), rows in by(every, "board", "boot").items():
        times = [row["wall_us"] for row in rows if is_timed(row)]
        causes = [row["code"] for row in rows if row.get("event") == "boot"]
        yield {
            "board": board, "boot": boot, "records": len(rows),
            "first_us": min(times, default=None), "last_us": max(times, default=None),
            "cause": max((c for c in causes if c is not None), default=None),
        }  # fmt: skip


def most_connected(events: list[Row], losses: list[Row]) -> int:
    """Clients of one boot between their CONNECT and their end, at most; nobody is there behind
    what is lost."""
    most = 0
    lost = [row | {"seq": row["first_seq"], "event": "lost"} for row in losses]
    for rows in by([*events, *lost], "boot").values():
        there: set[str] = set()
        for row in sorted(rows, key=lambda each: each["seq"]):
            if row["event"] == "lost":
                there.clear()
            elif row["event"] == "connect" and row["client"] is not None:
                there.add(row["client"])
            elif row["event"] == "disconnect":
                there.discard(row["client"])
            most = max(most, len(there))
    return most


def advice(board: Row) -> Iterator[str]:
    yield from (f"raise limit {table}" for table in board["full"])
    if board["least_heap"] is not None and board["least_heap"] < 10_240:
        yield "lower a limit: the heap was nearly used up"
    sooner = "harvest sooner, or raise record_budget: "
    if "overwritten" in board["reasons"]:
        yield sooner + "records were overwritten"
    if "ring full" in board["reasons"]:
        yield sooner + "the ring was full"
    if "write failed" in board["reasons"]:
        yield "check the flash: a write failed"
    if board["anchors"] == board["wrong_anchors"]:
        yield "send the time to the board ($SLOTMQ/time)"
    if board["wrong_anchors"]:
        yield "a clock that it used is wrong"


TABLES = (traffic, readings, silences, gaps, sensors, audit, sessions, boots, boards)
GOLD = {made.__name__: made for made in TABLES}
