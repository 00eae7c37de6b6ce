"""What each column of each table means: the end of docs/telemetry-reference.md is made of it.

python -m slotmq_tools.telemetry.columns      writes that
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from .schemas import ALL, Table

PAGE = Path(__file__).resolve().parents[2] / "docs/telemetry-reference.md"
_HEAD = """## Columns

Made from the schemas by `python -m slotmq_tools.telemetry.columns`. Times are in UTC. Each table
is partitioned by `board`.
"""
_OF = {
    "bronze": "A row for each frame as it was decoded.",
    "quarantine": "A row for each frame that cannot be a row of bronze.",
    "silver/bridged": "A row for each copy of a message that a bridge brought from another board.",
    "silver/events": "A row for each event that a board recorded.",
    "silver/anchors": "A row for each record that says what time it was.",
    "silver/losses": "A row for each run of numbers that no record has.",
    "silver/messages": "A row for each message that a board recorded.",
    "gold/traffic": "A row for each hour of a topic.",
    "gold/readings": "A row for each hour of a number: a payload, or a field of a JSON object.",
    "gold/silences": "A row for each pause of a topic that is much longer than usual there.",
    "gold/gaps": "A row for each loss.",
    "gold/sensors": "A row for each number: a payload, or a field of a JSON object.",
    "gold/audit": "A row for each message that contradicts what its QoS promises.",
    "gold/sessions": "A row for each client of a board.",
    "gold/boots": "A row for each boot of a board.",
    "gold/boards": "A row for each board.",
}
# `column text` a line; `table.column` where it means something else there.
_TEXTS = """
acknowledged messages with QoS 1 or 2
advice what to do, one sentence for each finding
after when it began: the last record before it; null: unknown
anchor the time that the record says
anchors how many records say what time it was
before when it ended: the first record after it; null: unknown
gold/silences.before the first message after it; null: there is none, up to the recording's end
before_seq number of the message before it from this client on this topic
believed false: it contradicts something, see above
board id of the board, 16 hex digits
silver/bridged.board id of the board that the message first came from
boot how often the board had started, as it counts
silver/bridged.boot the boot in which the origin recorded the message
silver/losses.boot the boot of which records are missing, or the first of `boots`
boots how many boots began, as far as their events were recorded
silver/losses.boots 1, or how many boots in a row left nothing
gold/gaps.boots 1, or how many boots in a row left nothing
bytes of payloads
cause `machine.reset_cause()`: 1 power, 2 hard reset, 3 watchdog, 4 deep sleep, 5 soft reset
client client id of the publisher or of the client that the event is about; null: nobody
clock how the time is known: anchored, between, own, suspect, unknown
code of a boot the reset cause, of a connect the protocol level, of a disconnect the reason
conflict another record has the same board, boot and seq
conflicts messages with `conflict`
connects how often it connected
copies how often the record was harvested
count how many values
counter it counts up: it neither drifts nor stands still
gold/audit.counter the field `n` of the message
crc CRC-32 of the record
detail the topic filter, or the table that is full
disconnects how often it disconnected
drift_per_day slope of the line that fits best
drift_r2 how well it fits, from 0 to 1
drifts the value creeps in one direction
dup the DUP flag
error_ms by how much the time may be wrong, as the record says, in ms
event what happened: boot, connect, disconnect, will, takeover, subscribe, ...
field name of the field; empty: the payload is the number
file path of the bundle
files names of the ring's files that are lost
finding twice, lost, or order broken
first time of the first value
gold/boots.first time of the first record whose time is known to the hour
gold/boards.first time of the first message whose time is known to the hour
first_seq number of the first missing record
quarantine.first_seq number of the first record in it; null: unknown
quarantine.last_seq number of the last record in it; null: unknown
quarantine.bytes how many are not read
flags as in FORMAT.md: of a message QoS, RETAIN, DUP and origin; of an event its kind
flapping it connected five times or more within ten minutes
flat the value stands still
full tables that were full
harvested_ms when the bundle was harvested, in ms since 1970
heap_bytes free bytes, of heap low-water
json the payload as JSON text, if it is JSON or CBOR
keep_alive_deaths how often the broker missed its keep alive
kind number, json, cbor, text, bytes or empty
last time of the last value
gold/boots.last time of the last record whose time is known to the hour
gold/boards.last time of the last message whose time is known to the hour
last_seq number of the last missing record; null: its end is unknown
least_heap least free bytes that were recorded
levels the topic, split at /
line line of the harvest's MANIFEST.sqlite, from 0; -1: a segment that is still written
lost how many records; null: unknown
gold/boards.lost how many records are known to be lost
max greatest value
mean of the values
messages how many
gold/audit.messages how many messages it concerns
min least value
most_connected most clients at once, at least
most_connects most connects within ten minutes of a boot
name as boards.toml says, or the id
number the payload as a number, if it is one
offset of the frame in the bundle
p10 a tenth of the values is not greater
p50 the median
p90 nine tenths of the values are not greater
payload as it was sent
bronze.payload of a message behind its origin, or what FORMAT.md says of the type
quarantine.payload the first 64 bytes of the frame
qos 0, 1 or 2
quality who said it: ntp, harvester, message, rtc, or corrected (clocks.toml)
rate messages a second
gold/readings.rate values a second
reason why it cannot be a row
reasons overwritten, ring full, write failed, quarantined, not read yet, or unexplained
recorder id of the board that recorded this copy
recorder_boot its boot then
recorder_seq number of the record there
records messages and events
refusals how often a table was full
restarted the board began anew meanwhile
retain the RETAIN flag
retained messages with RETAIN
same how many of the last values are equal
same_since time of the first of them
seconds how long
segment number of the segment in the board's ring
segments numbers of the segments that are lost
seq number of the record in its boot
silver/bridged.seq number of the record that the origin made
site as boards.toml says
start when the hour begins
stretch how many gaps of more than three numbers are before it in its boot
tags as boards.toml says
takeovers how often another connection took its client id
text the payload, if it is text and neither number nor JSON
ticks ms since the board started, modulo 2**30
topic of the message
type 1 definition, 2 message, 3 event, 4 anchor, 5 gap
uptime_ms ms since the board started, with the wraps that are known
usual_s the median of the topic's pauses
wall the time; null: unknown
wall_error_us by how much it may be wrong, in microseconds
wills how often its will was published
without_time messages whose time is not known to the hour
worst_error_us greatest `wall_error_us` of a message
wrong_anchors anchors that are not believed
"""
TEXTS = dict(line.split(" ", 1) for line in _TEXTS.strip().splitlines())


def page() -> str:
    """The page, with these columns. KeyError: a column without a text."""
    before, _, _ = PAGE.read_text().partition("## Columns\n")
    return before + _HEAD + "".join(_section(table) for table in ALL)


def _section(table: Table) -> str:
    rows = (
        f"| `{field.name}` | {_kind(field.type)} | {_text(table, field.name)} |\n"
        for field in table.schema
    )
    head = f"\n### {table.name}\n\n{_OF[table.name]}\n\n| column | type | |\n|---|---|---|\n"
    return head + "".join(rows)


def _text(table: Table, name: str) -> str:
    return TEXTS.get(f"{table.name}.{name}") or TEXTS[name]


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"list of {_kind(kind.value_type)}"
    return "timestamp" if pa.types.is_timestamp(kind) else str(kind)


if __name__ == "__main__":
    PAGE.write_text(page())
