"""Limits of a Pico 2 W on stock firmware: 5 TCP connections, 384 KB of heap."""

from slotmq import Limits

LIMITS = Limits(
    connections=4,  # lwIP has 5 TCP connections, as on a Pico W; one is the reserve
    sessions=32,
    subscriptions=200,
    nodes=300,
    name_bytes=8192,
    retained=128,
    retained_name_bytes=8192,
    messages=256,
    message_bytes=98304,
    deliveries=400,
    queued=100,
    max_packet=8192,
    tx_bytes=2048,
    rx_bytes=2048,
    route_entries=200,
)
