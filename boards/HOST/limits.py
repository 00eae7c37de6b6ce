"""Limits of a computer: for tests, simulation, and a broker inside a Python program."""

from slotmq import Limits

LIMITS = Limits(
    connections=512,
    sessions=2048,
    subscriptions=16000,
    nodes=32000,
    name_bytes=1048560,
    levels=128,
    topic_bytes=65535,
    client_id_bytes=256,
    retained=4000,
    retained_name_bytes=262144,
    messages=20000,
    message_bytes=16776192,
    message_block=512,
    deliveries=60000,
    inflight=100,
    queued=4000,
    received=512,
    max_packet=1048576,
    tx_bytes=16384,
    rx_bytes=16384,
    tail_bytes=1024,
    reassembly=8,
    routes=8192,
    route_topic_bytes=96,
    route_entries=40000,
    shares=1024,
    aliases=16,
)
