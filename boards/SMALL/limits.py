"""Limits of `slotmq run --small`: a computer with little memory, such as a Raspberry Pi Zero.

No board has this name: the option selects it.
"""

from slotmq import Limits

LIMITS = Limits(
    connections=64,
    sessions=256,
    subscriptions=2000,
    nodes=4000,
    name_bytes=131072,
    levels=32,
    topic_bytes=2048,
    client_id_bytes=64,
    retained=1000,
    retained_name_bytes=65536,
    messages=4000,
    message_bytes=1048576,
    deliveries=8000,
    inflight=50,
    queued=1000,
    received=64,
    max_packet=65536,
    tx_bytes=8192,
    rx_bytes=8192,
    tail_bytes=512,
    reassembly=4,
    routes=1024,
    route_topic_bytes=64,
    route_entries=4000,
    shares=64,
    aliases=16,
    users=100,
    acl_rules=200,
    acl_bytes=16384,
)
