"""Limits of a Pico W on stock firmware: 5 TCP connections, 160 KB of heap."""

from slotmq import Limits

LIMITS = Limits(
    connections=4,  # lwIP has 5 TCP connections; one is the reserve
    sessions=8,
    subscriptions=48,
    retained=32,
    messages=64,
    message_bytes=9856,
)
