"""`mqtt5`: what `mqtt` is for the older versions, with clients of MQTT 5.0."""

from collections.abc import Iterator

import pytest

from ..wire.client import Send
from ..wire.process import BrokerProcess
from .scene import Scene


@pytest.fixture
def mqtt5(broker: BrokerProcess, send: Send) -> Iterator[Scene]:
    scene = Scene(broker, send)
    yield scene
    scene.close()


@pytest.fixture
def topic(mqtt5: Scene) -> str:
    """A topic that no other test uses."""
    return mqtt5.topic
