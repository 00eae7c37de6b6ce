"""For mqtt_async: a board."""


def unique_id() -> bytes:
    return b"mqttas"
