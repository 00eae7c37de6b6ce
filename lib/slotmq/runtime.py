# runtime.py - the one place that knows which Python this is.
#
# Everything that differs between MicroPython and CPython is chosen here, once,
# at import: the inner loops (hot.py in viper, hot_cpython.py with dicts and
# slices, one contract), the clock, the stream adapters. No other core module asks.
import sys

MICROPYTHON = sys.implementation.name == "micropython"

if MICROPYTHON:
    from micropython import const
    from slotmq.hot import (
        Arena,
        Names,
        Routes,
        copy,
        filter_ok,
        find_id,
        new_packet,
        next_packet,
        place,
        settled,
        topic_matches,
        utf8_ok,
    )
    from slotmq.net_micropython import clock, make_poller, open_listener
else:
    from slotmq.hot_cpython import (
        Arena,
        Names,
        Routes,
        const,
        copy,
        filter_ok,
        find_id,
        new_packet,
        next_packet,
        place,
        settled,
        topic_matches,
        utf8_ok,
    )
    from slotmq.net_cpython import clock, make_poller, open_listener

__all__ = (
    "MICROPYTHON",
    "Arena",
    "Names",
    "Routes",
    "clock",
    "const",
    "copy",
    "filter_ok",
    "find_id",
    "make_poller",
    "new_packet",
    "next_packet",
    "open_listener",
    "place",
    "settled",
    "topic_matches",
    "utf8_ok",
)
