"""For mqtt_async: a board."""


def unique_id():
    return b"mqttas"
