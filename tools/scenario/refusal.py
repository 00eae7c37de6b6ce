"""Which setting refuses a client or a message. Refusals by full tables are in usage.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import codec

if TYPE_CHECKING:
    from .device import Device

TABLE_FULL = (3, 0x88, 0x97)  # codes of CONNACK
_BAD_CLIENT_ID, _TOO_LARGE, _NO_RETAIN, _NO_QOS = 2, 0x95, 0x9A, 0x9B
CLOSED = 0  # the broker closed the connection instead of sending CONNACK

# Settings that refuse a client, explained
CLIENTS = {
    "max_keepalive": "settings.max_keepalive is shorter than its keep_alive, or that is 0",
    "mqtt31_client_id_max": "settings.mqtt31_client_id_max is less than its client id has bytes",
    "max_packet_size": "settings.max_packet_size is less than its CONNECT has bytes",
    "max_qos": "settings.max_qos is lower than its will's QoS",
    "retain_available": "settings.retain_available is false, and its will is retained",
    "settings": "see settings",
}


def of_client(device: Device, settings: Any, code: int) -> str:
    """The setting that made the broker answer CONNECT with this code."""
    group = device.group
    if code == _BAD_CLIENT_ID and group.level < 5:
        most = settings.max_keepalive
        if most not in (0, 65535) and not 0 < group.keep_alive // 1000 <= most:
            return "max_keepalive"
        if group.level == 3 and 0 < settings.mqtt31_client_id_max < len(device.id):
            return "mqtt31_client_id_max"
    return (
        of_connect(device, settings) if code in (CLOSED, _TOO_LARGE, _NO_RETAIN, _NO_QOS) else ""
    )


def of_connect(device: Device, settings: Any) -> str:
    """The setting that refuses its CONNECT, or the will in it, or ""."""
    if 0 < settings.max_packet_size < device.connect_bytes:
        return "max_packet_size"
    will = device.group.will
    return _of_flags(will.qos, will.retain, settings) if will else ""


def of_message(device: Device, stream: int, settings: Any) -> str:
    """The setting that refuses its messages, as in message_state.CAUSES, or ""."""
    source = device.group.publish[stream]
    topic, body = device.topics[stream], bytes(source.payload)
    size = len(
        codec.publish(
            topic, body, source.qos, 1, source.retain, False, codec.of(device.group.level)
        )
    )
    if 0 < settings.max_packet_size < size:
        return "max_packet_size"
    found = _of_flags(source.qos, source.retain, settings)
    if not found and 0 < settings.message_size_limit < source.payload:
        return "message_size_limit"
    return found


def _of_flags(qos: int, retain: bool, settings: Any) -> str:
    if qos > settings.max_qos:
        return "max_qos"
    return "retain_available" if retain and not settings.retain_available else ""
