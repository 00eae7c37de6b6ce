"""For mqtt_async: Wi-Fi that is always there."""

STA_IF = 0


class WLAN:
    def __init__(self, _: int) -> None:
        pass

    def isconnected(self) -> bool:
        return True
