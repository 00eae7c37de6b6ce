"""Limits of an ESP32 without PSRAM on stock firmware: 10 sockets, 112 KB of heap."""

from slotmq import Limits

LIMITS = Limits(
    connections=7,  # 10 sockets: the listener, UDP for NTP, one in reserve, 7 clients
    sessions=10,
    # 112,000 bytes hold the code as well, so some tables are smaller than a Pico W's
    nodes=64,
    retained_name_bytes=768,
    retained=24,
    message_bytes=6144,
    max_packet=1280,
    tx_bytes=512,
    rx_bytes=512,
)
