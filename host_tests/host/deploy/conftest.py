"""Fixtures of the tests of deploy."""

import pytest

from slotmq_tools.deploy import board_files, mqtt_client


@pytest.fixture
def tested(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The addresses at which deploy tests a broker; each test succeeds without a connection."""
    addresses: list[tuple[str, int]] = []

    def try_out(address: tuple[str, int], _login: mqtt_client.Login) -> str:
        addresses.append(address)
        return "it answered"

    monkeypatch.setattr(mqtt_client, "try_out", try_out)
    return addresses


@pytest.fixture
def one_module(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The program consists of one module, with this content, and has no main.py."""
    content = b"new" * 3000
    monkeypatch.setattr(board_files, "code", lambda *_: {"/lib/slotmq/core.mpy": content})
    return content
