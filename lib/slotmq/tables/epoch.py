# epoch.py - moves the zero of the broker's clock: subtracts the same number from all stored times,
# so that none leaves the range of MicroPython's small integers. Differences stay as they are.
# test_epoch_times.py finds an attribute that gets a time and is not moved here, or by the shift()
# of its owner. (Names in texts stay long when packed, so a board pays for each in the table of an
# owner; here a name is loaded once in 300 days.)
#
# `now` is below 600 days (net/timers.py), and nothing is due more than 579 days later. Times
# before _LEAST become _LEAST: no timeout is as long. Loaded on demand; owns nothing. Does not
# allocate, because it must not fail half way.
from slotmq.constants import EXTRA, NEVER, NONE, NOW

_LEAST = -0x20000000  # tenths of a second
_FAR_STEP = 335544320  # tenths of a second: 2 ** 25 seconds


def take(broker, by):
    """Move the clock's zero `by` tenths of a second later."""
    _move(broker.clock, by)
    broker.now = broker.clock[NOW] = broker.now - by
    broker.carried[7] += 1
    conns = broker.conns
    _move(conns.opened, by)
    _move(conns.last_activity, by)
    _move(conns.buffered_since, by)
    _move(broker.sessions.progress, by)
    move_rows(broker, by)
    five = broker.five
    if five and five.next_due != NEVER:
        five.next_due -= by
    if broker.sys:
        broker.sys.next_round -= by
    loop = broker.loop
    loop.next_tick -= by
    lwip = loop.lwip
    if lwip:
        _move(lwip.since, by)
        lwip.gone_until = max(lwip.gone_until - by, _LEAST)
    journal = broker.journal
    if journal:
        journal.saved = max(journal.saved - by, _LEAST)
        journal.retry_at = max(journal.retry_at - by, _LEAST)
        # Its rows and its COMMIT are of the old clock; they count until all are written anew.
        journal.whole = False
    if broker.record:
        _move_recorder(broker.record, by)
    for each in broker.bridges.every if broker.bridges else ():
        each.shift(by, _LEAST)


def move_rows(broker, by):
    """Move the times that rows of the journal have; broker.now has been moved before."""
    _move(broker.sessions.left, by)
    five = broker.five
    if not five:
        return
    now = broker.now
    _move(five.will_at, by)
    expires = five.expires
    wills = broker.sessions.will
    for session in range(len(wills)):
        will = wills[session]
        if will != NONE and broker.messages.flags[will] & EXTRA and expires[will]:
            # A will's expiry counts from its publication: the will is treated as stored now.
            expires[will] += now + by - five.will_since[session]
        five.will_since[session] = now
    for msg in range(len(expires)):
        if expires[msg]:
            left = expires[msg] - by
            while left < now and five.far[msg]:
                five.far[msg] -= 1
                left += _FAR_STEP
            expires[msg] = max(left, _LEAST) or -1  # 0 would be never


def _move(column, by):
    for i in range(len(column)):
        column[i] = max(column[i] - by, _LEAST)


def _move_recorder(record, by):
    record.due -= by
    # without events nothing else moves heap_at
    record.heap_at = max(record.heap_at - by, _LEAST)
    record.flushed -= by
    record.time_at -= by
    rec = record.rec
    rec.now -= by
    if rec.retry_at != NEVER:
        rec.retry_at = max(rec.retry_at - by, _LEAST)


def record(record, by):
    """Move the time at which the recorder got the wall time. It may be further back than small
    integers reach, so this allocates."""
    if record.rec.wall:
        record.rec.wall[5] -= by
