# runtime.py - the one place that knows which Python this is.
#
# Everything that differs between MicroPython and CPython is chosen here, once, at
# import: the inner loops (hot*.py in viper, hot*_cpython.py with dicts and slices,
# one contract), the clock, the sockets. No other core module asks.
# ruff: noqa: F401 - others import from here
import sys

MICROPYTHON = sys.implementation.name == "micropython"

if MICROPYTHON:
    from micropython import const, heap_lock, heap_unlock

    from slotmq.hot import (
        copy,
        filter_ok,
        find_id,
        new_packet,
        next_packet,
        topic_matches,
        utf8_ok,
    )
    from slotmq.hot_lane import lane, may_read
    from slotmq.hot_messages import place, put_ack, store, unref
    from slotmq.hot_queue import acked, append, fan, finish, send
    from slotmq.hot_routes import Routes, next_dirty
    from slotmq.hot_stores import Arena, Names
    from slotmq.net_micropython import clock, half_close, make_poller, open_listener
else:
    from slotmq.hot_cpython import (
        const,
        copy,
        filter_ok,
        find_id,
        heap_lock,
        heap_unlock,
        new_packet,
        next_packet,
        topic_matches,
        utf8_ok,
    )
    from slotmq.hot_lane_cpython import lane, may_read
    from slotmq.hot_messages_cpython import put_ack, store, unref
    from slotmq.hot_queue_cpython import acked, append, fan, finish, send
    from slotmq.hot_routes_cpython import Routes, next_dirty, place
    from slotmq.hot_stores_cpython import Arena, Names
    from slotmq.hot_turn_cpython import make_poller
    from slotmq.net_cpython import clock, half_close, open_listener
