"""Gold of one board: sessions of its clients, its boots, its health, which limit to raise."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .decode import UNREAD
from .gold import Row, Silver, own, placed
from .names import Named

FLAPPING = 5  # connects within the time below
FLAPPING_MS = 600_000
TIMED_OUT = 8  # reason of a disconnect; lib/slotmq/constants.py has them all
LOW_HEAP = 10_240  # bytes; less is too little for a connection


def sessions(silver: Silver) -> list[Row]:
    """Per client: how often it came, went, and why."""
    sent = Counter(silver.messages.column("client").to_pylist())
    names = ["client", "event", "code", "boot", "stretch", "uptime_ms"]
    by_client: dict[str, list[Row]] = defaultdict(list)
    for row in silver.events.select(names).to_pylist():
        if row["client"] is not None:
            by_client[row["client"]].append(row)
    found = []
    for client, happened in by_client.items():
        of = Counter(row["event"] for row in happened)
        most = _most_connects([row for row in happened if row["event"] == "connect"])
        deaths = sum(r["event"] == "disconnect" and r["code"] == TIMED_OUT for r in happened)
        found.append({
            "client": client, "connects": of["connect"],
            "disconnects": of["disconnect"], "keep_alive_deaths": deaths,
            "takeovers": of["takeover"], "wills": of["will"], "most_connects": most,
            "flapping": most >= FLAPPING, "messages": sent[client],
        })  # fmt: skip
    return found


def _most_connects(connects: list[Row]) -> int:
    """Most within ten minutes of a boot, by its own clock, which needs no anchor.

    Each stretch begins with none: days may be missing between two of them, though their uptimes
    do not show it.
    """
    times: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row in connects:
        times[row["boot"], row["stretch"]].append(row["uptime_ms"])
    most = 0
    for at in times.values():
        at.sort()
        begin = 0
        for end, time in enumerate(at):
            while time - at[begin] >= FLAPPING_MS:
                begin += 1
            most = max(most, end - begin + 1)
    return most


def most_connected(silver: Silver) -> int | None:
    """Most clients that were connected at once in a boot, as far as is recorded.

    Where numbers are missing nobody knows who went: behind them it begins with nobody, so that
    there were at least so many.
    """
    found: int | None = None
    steps = [(int(hole), "", "") for hole in silver.holes]
    names = silver.events.column("event").to_pylist()
    clients = silver.events.column("client").to_pylist()
    for identity, name, client in zip(own(silver.events).tolist(), names, clients, strict=True):
        if client is not None and name in ("connect", "disconnect"):
            steps.append((identity, name, client))
    there: set[str] = set()
    boot = -1
    for identity, name, client in sorted(steps):
        if not name or identity >> 32 != boot:
            there.clear()
            boot = identity >> 32
        if name == "connect":
            there.add(client)
        elif name:
            there.discard(client)
        found = max(found or 0, len(there))
    return found


def boots(silver: Silver) -> list[Row]:
    """Per boot: when it was up, as far as records of known time show it, and why it began."""
    names = ["boot", "wall", "wall_error_us"]
    both = pa.concat_tables([silver.messages.select(names), silver.events.select(names)])
    time = pc.if_else(pa.array(placed(both)), both.column("wall"), pa.scalar(None, pa.null()))
    grouped = pa.table({"boot": both.column("boot"), "wall": time}).group_by("boot")
    found = grouped.aggregate([("wall", "min"), ("wall", "max"), ("boot", "count")])
    began = silver.events.filter(pc.equal(silver.events.column("event"), "boot"))
    causes = dict(zip(*(began.column(n).to_pylist() for n in ("boot", "code")), strict=True))
    return [
        {"boot": row["boot"], "first": row["wall_min"], "last": row["wall_max"],
         "records": row["boot_count"], "cause": causes.get(row["boot"])}
        for row in found.to_pylist()
    ]  # fmt: skip


def boards(silver: Silver, named: Named) -> list[Row]:
    """What a board has seen, what it lacked, and what to do about it; no row for one that has
    recorded nothing."""
    sent, events, losses, anchors = (
        getattr(silver, name) for name in ("messages", "events", "losses", "anchors")
    )
    if not any(each.num_rows for each in (sent, events, losses, anchors)):
        return []
    known = sent.filter(pa.array(placed(sent))).column("wall")
    happened = Counter(events.column("event").to_pylist())
    full = events.filter(pc.equal(events.column("event"), "table full")).column("detail")
    row: Row = {
        "name": named.name, "site": named.site, "tags": list(named.tags),
        "first": pc.min(known).as_py(), "last": pc.max(known).as_py(),
        "boots": happened["boot"], "messages": sent.num_rows,
        "without_time": sent.num_rows - len(known),
        "worst_error_us": pc.max(sent.column("wall_error_us")).as_py(),
        "conflicts": int(np.count_nonzero(sent.column("conflict").to_numpy())),
        "lost": sum(row["lost"] or 0 for row in losses.to_pylist() if row["reasons"] != [UNREAD]),
        "reasons": sorted({reason for told in losses.column("reasons").to_pylist()
                           for reason in told}),
        "anchors": anchors.num_rows,
        "wrong_anchors": int(np.count_nonzero(~anchors.column("believed").to_numpy())),
        "least_heap": pc.min(events.column("heap_bytes")).as_py(),
        "most_connected": most_connected(silver) or 0,
        "refusals": happened["table full"], "full": sorted({*full.to_pylist()}),
    }  # fmt: skip
    return [row | {"advice": [*advice(row)]}]


def advice(row: Row) -> Iterator[str]:
    """One sentence for each finding."""
    yield from (f"raise limit {table}" for table in row["full"])
    if row["least_heap"] is not None and row["least_heap"] < LOW_HEAP:
        yield "lower a limit: the heap was nearly used up"
    sooner = "harvest sooner, or raise record_budget: "
    if "overwritten" in row["reasons"]:
        yield sooner + "records were overwritten"
    if "ring full" in row["reasons"]:
        yield sooner + "the ring was full"
    if "write failed" in row["reasons"]:
        yield "check the flash: a write failed"
    if row["anchors"] == row["wrong_anchors"]:
        yield "send the time to the board ($SLOTMQ/time)"
    if row["wrong_anchors"]:
        yield "a clock that it used is wrong"
    if row["conflicts"]:
        yield "the board used record numbers twice: give it a new identity"
