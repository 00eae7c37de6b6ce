"""The MQTT 5.0 properties that a journal stores, as text with mosquitto's names."""

_NUMBERS = {0x01: ("payload-format-indicator", 1), 0x02: ("message-expiry-interval", 4)}
_TEXTS = {0x03: "content-type", 0x08: "response-topic", 0x09: "correlation-data"}
_USER = 0x26


def shown(properties: bytes) -> str | None:
    """The properties, in the format of the wire, as `name=value; ...`; None: there are none.

    A user property is `user-property=NAME=VALUE`."""
    found = []
    at = 0
    while at < len(properties):
        kind = properties[at]
        if kind in _NUMBERS:
            name, n = _NUMBERS[kind]
            found.append(f"{name}={int.from_bytes(properties[at + 1 : at + 1 + n], 'big')}")
            at += 1 + n
        elif kind in _TEXTS or kind == _USER:
            value, at = _text(properties, at + 1)
            if kind == _USER:
                more, at = _text(properties, at)
                value += f"={more}"
            found.append(f"{_TEXTS.get(kind, 'user-property')}={value}")
        else:  # a journal stores no other
            found.append(f"{kind:#04x}: {properties[at + 1 :].hex()}")
            break
    return "; ".join(found) or None


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = at + 2 + int.from_bytes(data[at : at + 2], "big")
    return data[at + 2 : end].decode(errors="backslashreplace"), end
