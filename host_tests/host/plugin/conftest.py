"""The fixtures of the plugin, and not those of the same names in host_tests/conftest.py."""

from slotmq_tools.testing.plugin import mqtt, mqtt_session

__all__ = ("mqtt", "mqtt_session")
