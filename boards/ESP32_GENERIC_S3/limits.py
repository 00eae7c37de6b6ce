"""Limits of an ESP32-S3 with 2 MB of PSRAM on stock firmware: 10 sockets."""

from slotmq import Limits

LIMITS = Limits(
    connections=7,  # as on every ESP32: sockets are few, memory is not
    sessions=64,
    subscriptions=1000,
    nodes=2000,
    name_bytes=65536,
    topic_bytes=2048,
    retained=500,
    retained_name_bytes=32768,
    messages=1500,
    message_bytes=524288,
    deliveries=3000,
    inflight=32,
    queued=1000,
    received=64,
    max_packet=32768,
    tx_bytes=5840,  # four segments
    rx_bytes=5840,
    tail_bytes=256,
    reassembly=4,
    routes=128,
    route_topic_bytes=64,
    route_entries=2000,
    bridges=4,
    bridge_topics=64,
)
