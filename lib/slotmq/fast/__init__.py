# fast: the inner loops, each twice with one contract: *_viper.py is native code for
# MicroPython, *_cpython.py does the same with dicts and slices. This file chooses between them
# at import; journal.py chooses the loops of the journal, which is loaded only with it, and their
# users those of the recorder and of WebSocket. columns.py makes broker.tables, the first argument
# of most functions.
# ruff: noqa: F401 - others import from here
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.fast.bytes_viper import (copy, filter_ok, find_id, level_end, new_packet,
        next_packet, odd_text, topic_matches, utf8_ok)
    from slotmq.fast.deliveries_viper import acked, append, fan, finish, send
    from slotmq.fast.messages_viper import place, put_ack, store, unref
    from slotmq.fast.path_viper import fast_path, may_read
    from slotmq.fast.pump_viper import pump
    from slotmq.fast.routes_viper import Routes, next_dirty
    from slotmq.fast.stores_viper import Arena, Names
else:
    from slotmq.fast.bytes_cpython import (copy, filter_ok, find_id, level_end, new_packet,
        next_packet, odd_text, topic_matches, utf8_ok)
    from slotmq.fast.deliveries_cpython import acked, append, fan, finish, send
    from slotmq.fast.messages_cpython import put_ack, store, unref
    from slotmq.fast.path_cpython import fast_path, may_read
    from slotmq.fast.pump_cpython import pump
    from slotmq.fast.routes_cpython import Routes, next_dirty, place
    from slotmq.fast.stores_cpython import Arena, Names
