# journal.py - chooses the inner loops of the journal for this runtime. Apart from
# fast/__init__.py, so that a broker without a journal does not load them.
# ruff: noqa: F401 - others import from here
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.fast.journal_viper import crc_add, crc_put, crc_start, crc_state, next_bit
else:
    from slotmq.fast.journal_cpython import crc_add, crc_put, crc_start, crc_state, next_bit
