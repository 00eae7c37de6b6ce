# runtime_journal.py - runtime.py's part for the journal, loaded only with it.
# ruff: noqa: F401 - others import from here
from slotmq.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.hot_journal import crc_add, crc_put, crc_start, crc_state, next_bit
else:
    from slotmq.hot_journal_cpython import crc_add, crc_put, crc_start, crc_state, next_bit
