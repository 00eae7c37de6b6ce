"""Limits of an ESP32 without PSRAM on stock firmware: 10 sockets, 112 KB of heap."""

from slotmq.limits import Limits

LIMITS = Limits(
    connections=7,  # 10 sockets: the listener, UDP for NTP, one in reserve, 7 clients
    sessions=10,
    subscriptions=48,
    retained=32,
    messages=64,
    message_bytes=12288,
    tx_bytes=640,
)
