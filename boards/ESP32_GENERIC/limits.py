"""Limits of an ESP32 or ESP32-C3 without PSRAM on stock firmware: 10 sockets, 112 KB of heap.

The C3's folder links to this file."""

from slotmq import Limits

LIMITS = Limits(
    connections=7,  # 10 sockets: the listener, UDP for NTP, one in reserve, 7 clients
    sessions=10,
    # 112,000 bytes hold the code as well, so some tables are smaller than a Pico W's
    nodes=64,
    name_bytes=1024,
    retained=24,
    retained_name_bytes=768,
    messages=48,
    message_bytes=4096,
    deliveries=60,
    queued=20,
    max_packet=1024,
    tx_bytes=448,
    rx_bytes=448,
    routes=8,
    aliases=0,  # clients may use none
)
