"""Limits of an ESP32 or ESP32-C3 without PSRAM on stock firmware: 10 sockets, 112 KB of heap.

The C3's folder links to this file."""

from slotmq import Limits

LIMITS = Limits(
    connections=7,  # 10 sockets: the listener, UDP for NTP, one in reserve, 7 clients
    sessions=8,
    # The 112 KB also contain the code of broker and firmware: the tables are much smaller than a
    # Pico W's. They suit short messages.
    subscriptions=24,  # three for each client
    nodes=31,
    name_bytes=320,
    topic_bytes=96,
    client_id_bytes=32,
    retained=16,
    retained_name_bytes=224,
    messages=24,
    message_bytes=928,
    message_block=32,
    deliveries=32,
    inflight=8,
    queued=12,
    max_packet=512,
    tx_bytes=176,  # a longer packet is sent in chunks
    rx_bytes=256,
    tail_bytes=32,
    reassembly=1,
    routes=4,
    route_entries=24,  # as many as subscriptions
    shares=2,
    aliases=0,  # topic aliases are off
)
