"""Limits of a Pico with a W5500 on stock firmware: 5 TCP connections, 184 KB of heap."""

from slotmq import Limits

LIMITS = Limits(
    connections=4,  # lwIP has 5 TCP connections; one is the reserve
    sessions=16,
    subscriptions=64,
    route_entries=64,
    retained=48,
    messages=96,
    message_bytes=32256,
)
