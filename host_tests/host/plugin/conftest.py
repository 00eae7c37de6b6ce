"""The fixtures of the plugin, and not those of the same names in host_tests/conftest.py."""

from collections.abc import Iterator

import pytest

from slotmq_tools import cache
from slotmq_tools.testing.plugin import mqtt, mqtt_session

__all__ = ("mqtt", "mqtt_session")


@pytest.fixture(autouse=True, scope="session")
def _cache() -> Iterator[None]:
    """Pytester's runs have a home of their own: they would fetch MicroPython each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLOTMQ_CACHE", str(cache.root()))
        yield
