"""Gold of one board: traffic, readings, silences, gaps, sensors, audit. With numpy, no Spark.

A topic belongs to a board, since every board is a broker of its own. So a board's messages are
those that it recorded, and those of its own that other boards have and it has not (`bridged`).
A message whose time is unknown, or not known to the hour, is in no table about time.
Sessions and health are in gold_health.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import payloads

HOUR_US, DAY_US = 3_600_000_000, 86_400_000_000
QUIET_TIMES, QUIET_S, QUIET_OF = 5, 60, 5  # longer than usual, at least, of so many messages
FLAT_COUNT, FLAT_S = 10, 3600
DRIFT_COUNT, DRIFT_S, DRIFT_R2 = 20, 6 * 3600, 0.7
COUNTER = "n"  # the field in which a publisher counts its messages
COUNTED = 5  # values, from which on a counter shows as one
_LAST = np.uint64(2**64 - 1)  # of all identities
Row = dict[str, Any]
Columns = dict[str, Any]  # of a table, by name


@dataclass(frozen=True)
class Silver:
    """Tables of silver of one board."""

    messages: pa.Table
    bridged: pa.Table  # of which it is the origin
    events: pa.Table
    anchors: pa.Table
    losses: pa.Table

    @cached_property
    def holes(self) -> Any:
        """Boot and first number of each loss, in order, as `identities` has them."""
        boots = self.losses.column("boot").to_numpy()
        return np.sort(identities(boots, self.losses.column("first_seq").to_numpy()))


def identities(boots: Any, seqs: Any) -> Any:
    """Boot and number as one, in the same order."""
    return boots.astype(np.uint64) << np.uint64(32) | seqs.astype(np.uint64)


def own(rows: pa.Table) -> Any:
    """The same of a table."""
    return identities(rows.column("boot").to_numpy(), rows.column("seq").to_numpy())


def placed(rows: pa.Table) -> Any:
    """Which rows have a time that is known well enough to say in which hours they may be."""
    error = pc.fill_null(rows.column("wall_error_us"), HOUR_US + 1).to_numpy()
    return error <= HOUR_US


def _order(keys: tuple[Any, ...]) -> Any:
    """As lexsort has it. By what is in order already nothing need be sorted; small integers are
    sorted faster."""
    while len(keys) > 1 and bool((keys[-1][1:] >= keys[-1][:-1]).all()):
        keys = keys[:-1]
    small = (
        key.astype(np.uint16) if key.dtype.kind in "iu" and len(key) and key.min() >= 0
        and key.max() < 1 << 16 else key
        for key in keys
    )  # fmt: skip
    return np.lexsort([*small][::-1])


class Groups:
    """Rows sorted by some keys, with where each group of equal keys begins.

    `keys` are all, the first the most significant; the first `count` of them make a group.
    """

    def __init__(self, keys: tuple[Any, ...], count: int) -> None:
        self.order = _order(keys)
        self.keys = tuple(key[self.order] for key in keys)
        begins = np.zeros(len(self.order), bool)
        begins[:1] = True
        for key in self.keys[:count]:
            begins[1:] |= key[1:] != key[:-1]
        self.begins = begins
        self.starts = np.flatnonzero(begins)
        self.counts = np.diff(np.append(self.starts, len(self.order)))

    def sum(self, values: Any) -> Any:
        """Of values in the order of the groups."""
        if not len(self.starts):
            return np.zeros(0, values.dtype)
        return np.add.reduceat(values, self.starts)

    def each(self, of_group: Any) -> Any:
        """What is of a group, for each of its rows."""
        return np.repeat(of_group, self.counts)

    @property
    def ends(self) -> Any:
        return self.starts + self.counts - 1


class Sent:
    """What tables of messages are made of: the board's, those that only others have recorded
    behind its own, and the numbers in them."""

    def __init__(self, silver: Silver) -> None:
        self.rows = _with_bridged(silver)
        self.recorded = silver.messages.num_rows
        topic = self.rows.column("topic").combine_chunks().dictionary_encode()
        self.topics, self.topic = topic.dictionary, topic.indices.to_numpy()
        self.identity, self.placed = own(self.rows), placed(self.rows)
        self.wall = pc.fill_null(self.rows.column("wall").cast(pa.int64()), 0).to_numpy()
        number = self.rows.column("number")
        plain = np.flatnonzero(number.is_valid().to_numpy())
        names: dict[str, int] = {"": 0}
        found = [(plain, np.zeros(len(plain), np.int64), number.drop_null().to_numpy())]
        for name, places, values in self._fields():
            code = names.setdefault(name, len(names))
            found.append((places, np.full(len(places), code), values))
        self.message, self.field, self.value = (
            np.concatenate(part) for part in zip(*found, strict=True)
        )
        self.fields = pa.array(names, pa.string())

    def _fields(self) -> Iterator[payloads.Found]:
        """The numbers of JSON objects."""
        texts = self.rows.column("json").combine_chunks()
        objects = pc.fill_null(pc.match_substring_regex(texts, r"^[ \t\r\n]*\{"), False)
        here = np.flatnonzero(objects.to_numpy(zero_copy_only=False))
        for name, places, values in payloads.fields(texts.filter(objects).to_pylist()):
            yield name, here[places], values

    def counters(self) -> Any:
        """The counter of each message; NaN where it has none."""
        found = np.full(len(self.topic), np.nan)
        code = pc.index(self.fields, COUNTER).as_py()
        some = (self.field == code) & (self.value == np.floor(self.value))
        found[self.message[some]] = self.value[some]
        return found


class Numbers:
    """The numbers of known time."""

    def __init__(self, sent: Sent) -> None:
        known = sent.placed[sent.message]
        whose = sent.message[known]
        self.topics, self.fields = sent.topics, sent.fields
        self.field, self.value = sent.field[known], sent.value[known]
        self.topic, self.at, self.identity = (
            column[whose] for column in (sent.topic, sent.wall, sent.identity)
        )


def _with_bridged(silver: Silver) -> pa.Table:
    names = ["boot", "seq", "topic", "client", "wall", "wall_error_us", "qos", "retain", "dup",
             "payload", "number", "json"]  # fmt: skip
    found = silver.messages.select(names)
    if not silver.bridged.num_rows:
        return found
    order = [(name, "ascending") for name in ("recorder", "recorder_boot", "recorder_seq")]
    others = silver.bridged.sort_by(order)
    _, first = np.unique(own(others), return_index=True)
    others = others.take(pa.array(first))
    others = others.filter(pa.array(~np.isin(own(others), own(found))))
    return pa.concat_tables([found, others.select(names)])


def traffic(sent: Sent, step: int = HOUR_US) -> Columns:
    """Messages and bytes of each topic in each hour, or in steps of so many microseconds."""
    groups = Groups((sent.topic[sent.placed], sent.wall[sent.placed] // step), 2)
    rows = sent.rows.filter(pa.array(sent.placed))
    size = pc.binary_length(rows.column("payload")).to_numpy().astype(np.int64)
    qos, retain = rows.column("qos").to_numpy(), rows.column("retain").to_numpy()
    topic, hour = (key[groups.starts] for key in groups.keys)
    return {
        "topic": sent.topics.take(pa.array(topic)), "start": hour * step,
        "messages": groups.counts, "bytes": groups.sum(size[groups.order]),
        "acknowledged": groups.sum((qos > 0)[groups.order].astype(np.int64)),
        "retained": groups.sum(retain[groups.order].astype(np.int64)),
        "rate": groups.counts * 1_000_000 / step,
    }  # fmt: skip


def readings(timed: Numbers, step: int = HOUR_US) -> Columns:
    """What each field of each topic was in each hour, or in steps of so many microseconds."""
    groups = Groups((timed.topic, timed.field, timed.at // step, timed.value), 3)
    topic, field, hour, _ = (key[groups.starts] for key in groups.keys)
    value = groups.keys[3]
    return {
        "topic": timed.topics.take(pa.array(topic)), "field": timed.fields.take(pa.array(field)),
        "start": hour * step, "count": groups.counts,
        "min": value[groups.starts], "max": value[groups.ends],
        "mean": groups.sum(value) / groups.counts,
        **{f"p{part}": _percentile(groups, value, part) for part in (10, 50, 90)},
        "rate": groups.counts * 1_000_000 / step,
    }  # fmt: skip


def _percentile(groups: Groups, value: Any, part: int) -> Any:
    """That lies between the two nearest."""
    place = (groups.counts - 1) * (part / 100)
    below = place.astype(np.int64)
    low = value[groups.starts + below]
    high = value[np.minimum(groups.starts + below + 1, groups.ends)]
    return low + (high - low) * (place - below)


def sensors(timed: Numbers) -> Columns:
    """Per field: whether its value creeps in one direction, and since when it has not moved.

    A counter does neither: the field `n`, or whole numbers of which more than half rise, and
    none falls but to 0 or 1, where counting begins anew.
    """
    groups = Groups((timed.topic, timed.field, timed.at, timed.identity), 2)
    topic, field, at, _ = groups.keys
    value, starts, ends = timed.value[groups.order], groups.starts, groups.ends
    step = np.zeros(len(value))
    step[1:] = value[1:] - value[:-1]
    step[starts] = 0
    runs = np.flatnonzero(groups.begins | (step != 0))
    last_run = runs[np.searchsorted(runs, ends, "right") - 1]
    same, first, last = ends - last_run + 1, at[starts], at[ends]
    slope, fits = _trend(groups, at, value)
    names = timed.fields.take(pa.array(field[starts]))
    counter = pc.equal(names, COUNTER).to_numpy(zero_copy_only=False)
    counter = counter | _counts(groups, value, step)
    lasts = (last - first >= DRIFT_S * 10**6) & (groups.counts >= DRIFT_COUNT)
    drifts = ~counter & lasts & (np.nan_to_num(fits) >= DRIFT_R2) & (np.nan_to_num(slope) != 0)
    return {
        "topic": timed.topics.take(pa.array(topic[starts])), "field": names,
        "count": groups.counts, "first": first, "last": last,
        "drift_per_day": pa.array(slope, mask=np.isnan(slope)),
        "drift_r2": pa.array(fits, mask=np.isnan(fits)), "drifts": drifts, "same": same,
        "same_since": at[last_run], "counter": counter,
        "flat": (same >= FLAT_COUNT) & (last - at[last_run] >= FLAT_S * 10**6),
    }  # fmt: skip


def _counts(groups: Groups, value: Any, step: Any) -> Any:
    """Whether the values of a group are those of a counter."""
    rises = groups.sum((step > 0).astype(np.int64)) * 2 > groups.counts
    falls = groups.sum(((step < 0) & (value != 0) & (value != 1)).astype(np.int64))
    parts = groups.sum((value != np.floor(value)).astype(np.int64))
    return (groups.counts >= COUNTED) & rises & (falls == 0) & (parts == 0)


def _trend(groups: Groups, at: Any, value: Any) -> tuple[Any, Any]:
    """Slope a day and r² of the line that fits best; NaN where there is none."""
    days = (at - groups.each(at[groups.starts])) / DAY_US
    x = days - groups.each(groups.sum(days) / groups.counts)
    y = value - groups.each(groups.sum(value) / groups.counts)
    # Where no value differs, what rounding leaves of the mean is no slope.
    moved = groups.sum((value != groups.each(value[groups.starts])).astype(np.int64))
    y[groups.each(moved) == 0] = 0
    xx, yy, xy = (groups.sum(a) for a in (x * x, y * y, x * y))
    with np.errstate(all="ignore"):
        slope = np.where(xx > 0, xy / xx, np.nan)
        fits = np.where(xx > 0, np.where(yy > 0, xy * xy / (xx * yy), 1.0), np.nan)
    return np.where(np.isfinite(slope), slope, np.nan), np.where(np.isfinite(fits), fits, np.nan)


def silences(silver: Silver) -> list[Row]:
    """When a topic was quiet for much longer than it is usually; `restarted`: its broker was
    off or began anew meanwhile. `before` null: it has said nothing up to the recording's end.

    Only what the recording shows: a pause in which records are lost, or messages of the topic
    have no time, is none; at the end counts what was recorded since the last start or loss.
    """
    topic = silver.messages.column("topic").combine_chunks().dictionary_encode()
    code, identity = topic.indices.to_numpy(), own(silver.messages)
    known = placed(silver.messages)
    wall = pc.fill_null(silver.messages.column("wall").cast(pa.int64()), 0).to_numpy()
    found: list[Row] = []
    begin, end, last = _last_run(silver)
    groups = Groups((code[known], wall[known], identity[known]), 1)
    for start, count in zip(groups.starts.tolist(), groups.counts.tolist(), strict=True):
        at, who = (key[start : start + count] for key in groups.keys[1:])
        steps = np.diff(at) / 10**6
        if count < QUIET_OF:
            continue
        usual, one = float(np.median(steps)), int(groups.keys[0][start])
        is_over = end - max(begin, int(at[-1])) > max(QUIET_S, usual * QUIET_TIMES) * 10**6
        if steps.max() <= QUIET_S and not is_over:
            continue
        hidden = np.sort(identity[~known & (code == one)])
        long = np.flatnonzero((steps > QUIET_S) & (steps > usual * QUIET_TIMES))
        low, high = np.minimum(who[long], who[long + 1]), np.maximum(who[long], who[long + 1])
        said = long[~(_between(silver.holes, low, high) | _between(hidden, low, high))].tolist()
        pauses: list[tuple[int, int | None, Any]]
        pauses = [(int(at[i]), int(at[i + 1]), who[i] >> 32 != who[i + 1] >> 32) for i in said]
        if is_over and not (hidden > who[-1]).any():
            pauses.append((int(at[-1]), None, who[-1] >> 32 != last >> 32))
        for after, before, restarted in pauses:
            found.append({
                "topic": topic.dictionary[one].as_py(), "after": after, "before": before,
                "seconds": ((end if before is None else before) - after) / 10**6,
                "usual_s": usual, "restarted": bool(restarted),
            })  # fmt: skip
    return found


def _last_run(silver: Silver) -> tuple[int, int, Any]:
    """When what was recorded since the last start or loss begins and ends (0, 0: nobody knows),
    and the identity of its end."""
    names = ["boot", "seq", "wall", "wall_error_us"]
    both = pa.concat_tables([silver.messages.select(names), silver.events.select(names)])
    both = both.filter(pa.array(placed(both)))
    identity = own(both)
    if not len(identity):
        return 0, 0, 0
    boot = identity.max() >> np.uint64(32) << np.uint64(32)
    since = max(boot, silver.holes[-1] if len(silver.holes) else boot)
    wall = both.column("wall").cast(pa.int64()).to_numpy()[identity >= since]
    ends = (int(wall.min()), int(wall.max())) if len(wall) else (0, 0)
    return *ends, identity.max()


def _between(some: Any, low: Any, high: Any) -> Any:
    """Whether one of these, which are in order, is between each two."""
    place = np.searchsorted(some, low, "right")
    return np.append(some, _LAST)[place] < high


def gaps(silver: Silver) -> list[Row]:
    """What was not recorded, with the files of the ring that are gone by name."""
    found = []
    for row in silver.losses.to_pylist():
        known = row["after"] is not None and row["before"] is not None
        seconds = (row["before"] - row["after"]).total_seconds() if known else None
        files = [f"{number:08x}.seg" for number in row["segments"]]
        found.append({**row, "files": files, "seconds": seconds})
    return found


def audit(sent: Sent, holes: Any) -> Columns:
    """What QoS promises and a recording contradicts, per client and topic.

    twice         QoS 2, and the message before it, of QoS 2 too, has the same payload: it
                  comes with DUP, or has a counter
    lost          a counter goes on by more than one between two messages of QoS 1 or 2, and
                  nothing is missing in the recording between them
    order broken  a counter goes back, and not to 0 or 1, where a publisher starts anew
    """
    client, counter = sent.rows.column("client"), sent.counters()
    some = np.flatnonzero(client.is_valid().to_numpy()[: sent.recorded])
    rows = sent.rows.take(pa.array(some))
    codes = rows.column("client").combine_chunks().dictionary_encode().indices.to_numpy()
    identity, counter = sent.identity[some], counter[some]
    keys = (identity >> np.uint64(32), codes, sent.topic[some], identity)
    groups = Groups(keys, 3)
    a, b = groups.order[:-1], groups.order[1:]
    after = ~groups.begins[1:]
    a, b = a[after], b[after]
    finding = _findings(rows, a, b, counter)
    ahead = np.nan_to_num(counter[b] - counter[a])
    hidden = np.searchsorted(holes, identity[a], "right") < np.searchsorted(holes, identity[b])
    said = (finding >= 0) & ~((finding == LOST) & hidden)
    a, b, finding, ahead = a[said], b[said], finding[said], ahead[said]
    which = pa.array(b)
    return {
        **{n: rows.column(n).take(which) for n in ("boot", "seq", "client", "topic", "wall")},
        "finding": pa.array(FINDINGS).take(pa.array(finding)),
        "messages": np.where(finding == LOST, ahead - 1, 1).astype(np.int64),
        "before_seq": rows.column("seq").take(pa.array(a)),
        "counter": pa.array(np.nan_to_num(counter[b]).astype(np.int64),
                            mask=np.isnan(counter[b])),
    }  # fmt: skip


FINDINGS = ("twice", "order broken", "lost")
TWICE, BROKEN, LOST = range(3)


def _findings(rows: pa.Table, a: Any, b: Any, counter: Any) -> Any:
    """What each message is behind the one before it; -1: nothing."""
    qos, payload = rows.column("qos").to_numpy(), rows.column("payload").combine_chunks()
    dup = rows.column("dup").to_numpy()
    may_be = (qos[a] == 2) & (qos[b] == 2) & (dup[b] | ~np.isnan(counter[b]))
    places = np.flatnonzero(may_be)
    same = pc.equal(payload.take(pa.array(a[places])), payload.take(pa.array(b[places])))
    found = np.full(len(a), -1)
    ahead = counter[b] - counter[a]
    found[(ahead > 1) & (qos[a] > 0) & (qos[b] > 0)] = LOST
    found[(ahead < 0) & (counter[b] > 1)] = BROKEN
    found[places[same.to_numpy(zero_copy_only=False)]] = TWICE
    return found
