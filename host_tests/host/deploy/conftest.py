"""What several tests of the host side need."""

import pytest

from slotmq_tools.deploy import mqtt_client


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Where deploy has tried the broker."""
    addresses: list[tuple[str, int]] = []

    def try_out(address: tuple[str, int], _login: mqtt_client.Login) -> str:
        addresses.append(address)
        return "it answered"

    monkeypatch.setattr(mqtt_client, "try_out", try_out)
    return addresses
