"""A sample of the wire suite in a matrix of the runtimes, the transports, and the fast path or
the handlers without it. Over TLS the first bytes of what is sent are in records of their own, over
WebSocket in fragments of their own."""
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
from .conftest import Matrix

del test_what_came_before_a_reset_counts  # noqa: F821 - it resets TCP


@pytest.fixture
def mqtt(
    request: pytest.FixtureRequest, matrix: Matrix, runtime: str, cell: tuple[str, str]
) -> Iterator[Scene]:
    if request.node.get_closest_marker("config") or request.node.get_closest_marker("own_broker"):
        pytest.skip("it needs a broker of its own")
    transport, path = cell
    served = matrix.broker(runtime, path, transport)
    relay: Any = served if transport == "plain" else served.relay(transport)
    is_5 = getattr(request, "param", "3.1.1") == "5.0"
    scene = (SceneOfEachVersion if is_5 else Scene)(relay, _whole)
    yield scene
    scene.close()
    if relay is not served:
        relay.close()
    assert served.alive(), served.complaints()


def _whole(sock: Any, data: bytes) -> None:
    sock.sendall(data)
