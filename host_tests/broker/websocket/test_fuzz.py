"""Random frames of WebSocket: no other client is affected or waits, and nothing is left."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from slotmq_dev.fuzz import TIGHT
from slotmq_dev.fuzz.canary import Canary
from slotmq_dev.fuzz.feeding import Feeder, feed_many
from slotmq_dev.fuzz.frames import Frames
from slotmq_dev.fuzz.link import Noticed
from slotmq_tools.ports import free_port

from ..wire.process import BrokerProcess

INPUTS = 3000
SEED = 1
MOST_S = 5.0  # that a message of the canary may take on a busy machine


@pytest.fixture
def web(runtime: str, tmp_path: Path) -> Iterator[tuple[BrokerProcess, int]]:
    """A broker, and its port for WebSocket."""
    port = free_port()
    lines = f"listener {port} 127.0.0.1\nprotocol websockets\nhttp_dir {tmp_path}\n"
    broker = BrokerProcess(runtime, TIGHT + lines, tmp_path)
    yield broker, port
    broker.stop()


@pytest.mark.timeout(400)
def test_frames_affect_no_other_client_and_leave_nothing(web: tuple[BrokerProcess, int]) -> None:
    broker, port = web
    feeder = Feeder(broker.address, ("127.0.0.1", port))
    canary = Canary(broker.address)
    try:
        feed_many(feeder, SEED, INPUTS, Frames)
    finally:
        canary.land(MOST_S)
    feeder.clean()
    feeder.close()


@pytest.mark.parametrize("waits", [[MOST_S + 1], [MOST_S / 3] * 100])
def test_a_canary_that_waits_is_noticed(
    web: tuple[BrokerProcess, int], waits: list[float]
) -> None:
    canary = Canary(web[0].address)
    web[0].wait_for(lambda: canary.delays, "its first message")
    canary.delays.extend(waits)
    with pytest.raises(Noticed, match="the slowest took"):
        canary.land(MOST_S)


def test_most_frames_reach_the_broker_as_mqtt() -> None:
    made = [data for data, _ in zip(Frames(3), range(1000), strict=False)]
    upgraded = [data for data in made if data.startswith(b"GET /mqtt HTTP/1.1\r\nHost: broker")]
    assert len(upgraded) > 850
    assert made == [data for data, _ in zip(Frames(3), range(1000), strict=False)]
