"""What each column of the tables is: its type and what it means.

A line is `column type text`, or `table.column type text` where it means something else there.
"""

from __future__ import annotations

_COLUMNS = """
acknowledged long messages with QoS 1 or 2
advice strings what to do, one sentence for each finding
after time when it began: the last record before it; null: unknown
anchor time the time that the record says
anchors long how many records say what time it was
before time when it ended: the first record after it; null: unknown
gold/silences.before time the first message after it; null: none up to the recording's end
before_seq long number of the message before it from this client on this topic
believed bool false: it contradicts something, see above
board string id of the board, 16 hex digits
silver/bridged.board string id of the board that the message first came from
boot long how often the board had started, as it counts
silver/bridged.boot long the boot in which the origin recorded the message
silver/losses.boot long the boot of which records are missing, or the first of `boots`
boots long how many boots began, as far as their events were recorded
silver/losses.boots long 1, or how many boots in a row left nothing
gold/gaps.boots long 1, or how many boots in a row left nothing
bytes long of payloads
cause int `machine.reset_cause()`: 1 power, 2 hard reset, 3 watchdog, 4 deep sleep, 5 soft reset
client string client id of the publisher or of the client that the event is about; null: nobody
clock string how the time is known: anchored, between, own, suspect, unknown
code int of a boot the reset cause, of a connect the protocol level, of a disconnect the reason
conflict bool another record has the same board, boot and seq
conflicts long messages with `conflict`
connects long how often it connected
copies long how often the record was harvested
count long how many values
counter bool it counts up: it neither drifts nor stands still
gold/audit.counter long the field `n` of the message
crc long CRC-32 of the record
detail string the topic filter, or the table that is full
disconnects long how often it disconnected
drift_per_day double slope of the line that fits best
drift_r2 double how well it fits, from 0 to 1
drifts bool the value creeps in one direction
dup bool the DUP flag
error_ms long by how much the time may be wrong, as the record says, in ms
event string what happened: boot, connect, disconnect, will, takeover, subscribe, ...
field string name of the field; empty: the payload is the number
file string path of the bundle
files strings names of the ring's files that are lost
finding string twice, lost, or order broken
first time time of the first value
gold/boots.first time time of the first record whose time is known to the hour
gold/boards.first time time of the first message whose time is known to the hour
first_seq long number of the first missing record
quarantine.first_seq long number of the first record in it; null: unknown
quarantine.last_seq long number of the last record in it; null: unknown
quarantine.bytes long how many are not read
flags int as in FORMAT.md: of a message QoS, RETAIN, DUP and origin; of an event its kind
flapping bool it connected five times or more within ten minutes
flat bool the value stands still
full strings tables that were full
harvested_ms long when the bundle was harvested, in ms since 1970
heap_bytes long free bytes, of heap low-water
json string the payload as JSON text, if it is JSON that is whole Unicode, or CBOR
keep_alive_deaths long how often the broker missed its keep alive
kind string number, json, cbor, text, bytes or empty
last time time of the last value
gold/boots.last time time of the last record whose time is known to the hour
gold/boards.last time time of the last message whose time is known to the hour
last_seq long number of the last missing record; null: its end is unknown
least_heap long least free bytes that were recorded
levels strings the topic, split at /
line long line of the harvest's MANIFEST.sqlite, from 0; -1: a segment that is still written
lost long how many records; null: unknown
gold/boards.lost long how many records are known to be lost
max double greatest value
mean double of the values
messages long how many
gold/audit.messages long how many messages it concerns
min double least value
most_connected long most clients at once, at least
most_connects long most connects within ten minutes of a boot
name string as boards.toml says, or the id
number double the payload as a number, if it is one
offset long of the frame in the bundle
p10 double a tenth of the values is not greater
p50 double the median
p90 double nine tenths of the values are not greater
payload binary as it was sent
bronze.payload binary of a message behind its origin, or what FORMAT.md says of the type
quarantine.payload binary the first 64 bytes of the frame
qos int 0, 1 or 2
quality string who said it: ntp, harvester, message, rtc, or corrected (clocks.toml)
rate double messages a second
gold/readings.rate double values a second
reason string why it cannot be a row
reasons strings overwritten, ring full, write failed, quarantined, not read yet, or unexplained
recorder string id of the board that recorded this copy
recorder_boot long its boot then
recorder_seq long number of the record there
records long messages and events
refusals long how often a table was full
restarted bool the board began anew meanwhile
retain bool the RETAIN flag
retained long messages with RETAIN
same long how many of the last values are equal
same_since time time of the first of them
seconds double how long
segment long number of the segment in the board's ring
segments longs numbers of the segments that are lost
seq long number of the record in its boot
silver/bridged.seq long number of the record that the origin made
site string as boards.toml says
start time when the hour begins
stretch long how many gaps of more than three numbers are before it in its boot
tags strings as boards.toml says
takeovers long how often another connection took its client id
text string the payload, if it is text and neither number nor JSON
ticks long ms since the board started, modulo 2**30
topic string of the message
type int 1 definition, 2 message, 3 event, 4 anchor, 5 gap
uptime_ms long ms since the board started, with the wraps that are known
usual_s double the median of the topic's pauses
wall time the time; null: unknown
wall_error_us long by how much it may be wrong, in microseconds
wills long how often its will was published
without_time long messages whose time is not known to the hour
worst_error_us long greatest `wall_error_us` of a message
wrong_anchors long anchors that are not believed
"""
COLUMNS = {
    name: (kind, text)
    for name, kind, text in (line.split(" ", 2) for line in _COLUMNS.strip().splitlines())
}
