# journal.py - the inner loops of the journal, as __init__.py has the others; loaded only with it.
# ruff: noqa: F401 - others import from here
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.fast.journal_viper import crc_add, crc_put, crc_start, crc_state, next_bit
else:
    from slotmq.fast.journal_cpython import crc_add, crc_put, crc_start, crc_state, next_bit
