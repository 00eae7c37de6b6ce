"""Limits of an ESP32-C3 on stock firmware: 10 sockets, 112 KB of heap."""

from slotmq import Limits

LIMITS = Limits(
    connections=7,  # 10 sockets: the listener, UDP for NTP, one in reserve, 7 clients
    sessions=10,
    # as on an ESP32 without PSRAM: the code takes half of the heap
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
