"""A sample of the wire suite over WebSocket, each byte of a packet in a fragment of its own."""
# ruff: noqa: F403 - the tests are those of the wire suite

from collections.abc import Iterator
from typing import Any

import pytest

from ..wire.scene import Scene
from ..wire.test_malformed import *
from ..wire.test_publish import *
from ..wire.test_qos2 import *
from ..wire.test_will import *
from ..wire5.scene import SceneOfEachVersion
from .conftest import Web
from .relay import Relay

del test_what_came_before_a_reset_counts  # noqa: F821 - it resets TCP


@pytest.fixture
def mqtt(request: pytest.FixtureRequest, web: Web) -> Iterator[Scene]:
    if request.node.get_closest_marker("config") or request.node.get_closest_marker("own_broker"):
        pytest.skip("it needs a broker of its own")
    relay: Any = Relay(web.ws)
    is_5 = getattr(request, "param", "3.1.1") == "5.0"
    scene = (SceneOfEachVersion if is_5 else Scene)(relay, _whole)
    yield scene
    scene.close()
    relay.close()


def _whole(sock: Any, data: bytes) -> None:
    sock.sendall(data)
