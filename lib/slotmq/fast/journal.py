# journal.py - chooses the inner loops of the journal, with which it is loaded.
# ruff: noqa: F401 - others import from here
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.fast.journal_viper import crc_add, crc_put, crc_start, crc_state, next_bit
else:
    from slotmq.fast.journal_cpython import crc_add, crc_put, crc_start, crc_state, next_bit
