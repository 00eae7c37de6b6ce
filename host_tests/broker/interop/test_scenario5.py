"""One scenario of MQTT 5.0 through all clients, with a list of what each cannot do."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from ..wire.process import BrokerProcess
from .adapter_gmqtt import GmqttAdapter
from .adapter_mosquitto import MosquittoAdapter
from .adapter_mqttjs import MqttJsAdapter, Node
from .adapter_paho import PahoAdapter
from .moves5 import Adapter, Cannot, play
from .scenario5 import IMPOSSIBLE, STEPS

New = Callable[[tuple[str, int]], Adapter]
OURS = {"the broker's alias for the topic": pytest.mark.ours("the peer gives no aliases")}


@contextlib.contextmanager
def gmqtt_clients() -> Iterator[New]:
    with asyncio.Runner() as runner:
        yield partial(GmqttAdapter, loop=runner.get_loop())


@contextlib.contextmanager
def mqttjs_clients() -> Iterator[New]:
    with contextlib.closing(Node()) as node:
        yield partial(MqttJsAdapter, node=node)


CLIENTS: dict[str, Callable[[], contextlib.AbstractContextManager[New]]] = {
    "paho": lambda: contextlib.nullcontext(PahoAdapter),
    "gmqtt": gmqtt_clients,
    "MQTT.js": mqttjs_clients,
    "mosquitto": lambda: contextlib.nullcontext(MosquittoAdapter),
}


@pytest.fixture(scope="module", params=CLIENTS)
def client(request: pytest.FixtureRequest) -> Iterator[tuple[str, New]]:
    with CLIENTS[request.param]() as new:
        yield request.param, new


@pytest.mark.parametrize("step", [pytest.param(step, marks=OURS.get(step, ())) for step in STEPS])
def test_step(broker: BrokerProcess, base: str, client: tuple[str, New], step: str):
    """The adapter refuses exactly the steps in the table, for the reasons in the table."""
    name, new = client
    try:
        play(STEPS[step], base, partial(new, broker.address))
        why = None
    except Cannot as refusal:
        why = str(refusal)
    assert why == IMPOSSIBLE[name].get(step)


def test_the_table_of_impossible_steps_has_no_unknown_names():
    assert IMPOSSIBLE.keys() == CLIENTS.keys()
    for steps in IMPOSSIBLE.values():
        assert steps.keys() <= STEPS.keys()


@pytest.mark.parametrize("step", STEPS)
def test_at_least_two_clients_can_do_each_step(step: str):
    assert sum(step not in steps for steps in IMPOSSIBLE.values()) >= 2
