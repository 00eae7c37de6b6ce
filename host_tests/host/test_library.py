"""slotmq as a library on CPython: threads, the end of a broker, types, what an import costs."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client
from host_tests.broker.wire.codec import Will
from slotmq import Broker, Limits
from slotmq.embed import serving_cpython

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 20


def wait_until_it_runs(broker: Broker, thread: threading.Thread) -> None:
    while broker.call(threading.get_ident) != thread.ident:
        assert thread.is_alive()
        time.sleep(0.001)


@contextmanager
def running(broker: Broker) -> Iterator[threading.Thread]:
    """Run the broker in a thread."""
    thread = threading.Thread(target=broker.run)
    thread.start()
    wait_until_it_runs(broker, thread)
    try:
        yield thread
    finally:
        broker.close()
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()


def test_listen_returns_the_port_that_the_system_has_chosen() -> None:
    with Broker() as broker:
        host, port = broker.listen("127.0.0.1", 0)
        assert host == "127.0.0.1" and port > 0


def test_another_thread_publishes_while_the_broker_waits() -> None:
    broker = Broker()
    got: list[Any] = []
    broker.subscribe("lamp", lambda *message: got.append(message))
    with running(broker):
        assert broker.publish("lamp", "on", 1)
        broker.call(int)
    assert got == [("lamp", b"on", 0, 0)]


def test_a_call_does_not_wait_for_the_end_of_a_long_turn() -> None:
    """The turn would last for an hour."""
    with Broker() as broker:
        thread = threading.Thread(target=broker.turn, args=(3_600_000,), daemon=True)
        thread.start()
        wait_until_it_runs(broker, thread)
        broker.wake()
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()


def test_a_call_has_a_result_or_raises() -> None:
    broker = Broker()
    with running(broker) as thread:
        assert broker.call(threading.get_ident) == thread.ident
        assert broker.call(divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            broker.call(lambda: 1 / 0)
        with pytest.raises(ValueError, match="without wildcards"):
            broker.publish("+")


def test_many_threads_at_a_time() -> None:
    count = [0]

    def add() -> None:
        count[0] += 1

    with Broker() as broker:

        def work() -> None:
            for _ in range(500):
                broker.call(add)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            broker.turn(5)
    assert count == [2000]


def test_two_brokers_in_two_threads_do_not_disturb_each_other() -> None:
    brokers = [Broker(), Broker()]
    for broker in brokers:
        broker.subscribe("n", lambda *_: None)
    with running(brokers[0]), running(brokers[1]):
        for _ in range(300):
            for broker in brokers:
                assert broker.publish("n")


REFUSED: list[tuple[str, Callable[[Broker], object]]] = [
    ("turn", lambda broker: broker.turn(0)),
    ("run", lambda broker: broker.run()),
    ("client", lambda broker: broker.client("x")),
    ("hooks", lambda broker: setattr(broker, "hooks", None)),
]


@pytest.mark.parametrize("act", [act for _, act in REFUSED], ids=[name for name, _ in REFUSED])
def test_what_one_thread_may_do_at_a_time_is_refused(act: Callable[[Broker], object]) -> None:
    broker = Broker()
    with (
        running(broker),
        pytest.raises(RuntimeError, match=r"use broker\.call\(function\)"),
    ):
        act(broker)


def test_a_client_of_the_program_is_used_in_one_thread() -> None:
    broker = Broker()
    own = broker.client("own")
    with running(broker):
        with pytest.raises(RuntimeError, match="another thread"):
            own.publish("a")
        assert broker.call(own.publish, "a")


def test_turns_and_close_are_refused_in_a_callback() -> None:
    broker = Broker()
    said: list[str] = []

    def heard(*_: object) -> None:
        for act in (broker.turn, broker.run, broker.close):
            with pytest.raises(RuntimeError) as error:
                act()
            said.append(str(error.value))
        broker.stop()

    broker.subscribe("a", heard)
    broker.publish("a")
    broker.run()
    broker.close()
    assert said == [*["turn(), run(): not in a callback, a hook or call()"] * 2, said[2]]
    assert said[2].startswith("close(): not within a turn")


def test_close_publishes_wills_and_may_be_called_again() -> None:
    broker = Broker()
    _, port = broker.listen("127.0.0.1", 0)
    got: list[Any] = []
    broker.subscribe("state", lambda *message: got.append(message))
    with running(broker):
        client = Client(("127.0.0.1", port))
        client.connect(codec.connect("sensor", will=Will("state", b"gone")))
        broker.close()
        client.expect_closed()
    broker.close()
    assert [message[1] for message in got] == [b"gone"]


@pytest.mark.parametrize(
    "act",
    [
        lambda broker: broker.publish("a"),
        lambda broker: broker.turn(0),
        lambda broker: broker.listen("127.0.0.1", 0),
        lambda broker: broker.loop,
    ],
)
def test_a_closed_broker_says_so(act: Callable[[Broker], object]) -> None:
    broker = Broker()
    broker.close()
    with pytest.raises(RuntimeError, match="this broker is closed"):
        act(broker)


def test_async_with_serves_in_a_task() -> None:
    async def program() -> bytes:
        async with Broker() as broker:
            _, port = broker.listen("127.0.0.1", 0)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(codec.connect("one"))
            answer = await reader.readexactly(4)
            assert await asyncio.to_thread(broker.publish, "a", "b")
        writer.close()
        return answer

    assert asyncio.run(program()) == b"\x20\2\0\0"


CLOSED: list[Callable[[Broker], object]] = [
    lambda broker: broker.close(),
    lambda broker: broker.call(broker.close),
]


@pytest.mark.parametrize("act", CLOSED, ids=["close", "call"])
def test_a_broker_that_is_closed_while_it_is_served_ends_in_order(
    act: Callable[[Broker], object],
) -> None:
    async def program() -> None:
        async with Broker() as broker:
            act(broker)
            await asyncio.sleep(0.02)
        broker = Broker()
        task = asyncio.create_task(broker.serve())
        await asyncio.sleep(0)
        act(broker)
        await asyncio.wait_for(task, TIMEOUT_S)
        with pytest.raises(RuntimeError, match="this broker is closed"):
            await broker.serve()

    asyncio.run(program())


def test_another_thread_closes_a_broker_that_is_served() -> None:
    async def program() -> None:
        for _ in range(20):  # within its turns, and between them
            async with Broker() as broker:
                await asyncio.to_thread(broker.close)

    asyncio.run(program())


def broken(broker: Broker) -> None:
    broker.subscribe("bad", lambda *_: 1 / 0)
    broker.publish("bad")


def test_a_callback_that_raises_ends_the_body_of_async_with_at_once() -> None:
    said: list[str] = []

    async def program() -> None:
        async with Broker() as broker:
            broken(broker)
            try:
                await asyncio.sleep(TIMEOUT_S)
                said.append("the body went on")
            finally:
                with pytest.raises(RuntimeError, match=r"ended.*ZeroDivisionError"):
                    broker.publish("bad")

    began = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        asyncio.run(program())
    assert not said and time.monotonic() - began < TIMEOUT_S


def test_a_body_that_has_ended_before_gets_the_exception() -> None:
    async def program() -> int:
        with pytest.raises(ZeroDivisionError):
            async with Broker() as broker:
                broken(broker)
        await asyncio.sleep(0)  # it is not cancelled
        task = asyncio.current_task()
        return task.cancelling() if task else -1

    assert asyncio.run(program()) == 0


def test_a_body_that_was_cancelled_goes_on_behind_the_exception() -> None:
    async def program() -> int:
        with pytest.raises(ZeroDivisionError):
            async with Broker() as broker:
                broken(broker)
                await asyncio.sleep(TIMEOUT_S)
        await asyncio.sleep(0)
        task = asyncio.current_task()
        return task.cancelling() if task else -1

    assert asyncio.run(program()) == 0


def test_after_run_has_failed_nothing_is_published_into_the_void() -> None:
    with Broker() as broker:
        broken(broker)
        with pytest.raises(ZeroDivisionError):
            broker.run()
        with pytest.raises(RuntimeError, match=r"ended.*ZeroDivisionError"):
            broker.publish("a")


BESIDE = [*REFUSED, ("turn in a call", lambda broker: broker.call(broker.turn))]


@pytest.mark.parametrize("act", [act for _, act in BESIDE], ids=[name for name, _ in BESIDE])
def test_another_thread_beside_serve_is_refused_and_the_task_goes_on(
    act: Callable[[Broker], object],
) -> None:
    async def program() -> None:
        async with Broker() as broker:
            for _ in range(20):  # within its turns, and between them
                with pytest.raises(RuntimeError, match=r"runs this broker"):
                    await asyncio.to_thread(act, broker)
            assert await asyncio.to_thread(broker.publish, "a")

    asyncio.run(program())


def test_what_another_thread_asks_for_ends_the_nap_of_serve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whose nap would last for an hour."""
    monkeypatch.setattr(serving_cpython, "_NAP_S", 3600)
    got: list[Any] = []

    async def program() -> None:
        async with Broker() as broker:
            came = asyncio.Event()

            def heard(*message: Any) -> None:
                got.append(message)
                came.set()

            broker.subscribe("a", heard)
            for n in range(100):
                came.clear()
                if n % 2:
                    await asyncio.to_thread(broker.publish, "a", str(n))
                else:
                    broker.publish("a", str(n))
                await asyncio.wait_for(came.wait(), TIMEOUT_S)

    asyncio.run(program())
    assert [int(message[1]) for message in got] == list(range(100))


def test_a_second_serve_is_refused() -> None:
    async def program() -> None:
        async with Broker() as broker:
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="served already"):
                await broker.serve()
            assert broker.publish("a")

    asyncio.run(program())


def test_serve_beside_run_is_refused() -> None:
    broker = Broker()
    with running(broker) as thread:
        with pytest.raises(RuntimeError, match="another thread"):
            asyncio.run(broker.serve())
        assert broker.call(threading.get_ident) == thread.ident


def test_a_broker_that_is_forgotten_gives_its_descriptors_back() -> None:
    code = """
import gc, os
from slotmq import Broker
Broker().turn(0)
gc.collect()
before = len(os.listdir("/proc/self/fd"))
for _ in range(50):
    Broker().turn(0)
gc.collect()
print(len(os.listdir("/proc/self/fd")) - before)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_an_import_brings_only_the_broker() -> None:
    code = "import sys, slotmq; print(*{name.split('.')[0] for name in sys.modules})"
    base = "import sys, array, collections, os, select, socket, struct, zlib; " + code[12:]
    found, known = (
        set(subprocess.check_output([sys.executable, "-c", each], text=True).split())
        for each in (code, base.replace("slotmq; ", ""))
    )
    assert found - known <= {"slotmq", "time", "stat", "gc", "re", "enum", "functools"} | {
        name for name in found if name.startswith("_")
    }


# Types

STUBBED = ("slotmq.Broker", "slotmq.Limits", "slotmq.Settings", "slotmq.__")
# Methods that Broker.__getattr__ finds
FOUND = tuple(f"slotmq.Broker.{name}" for name in ("bridge", "client", "compact", "dump_tree"))


def test_the_stubs_fit_the_code() -> None:
    """mypy imports the package, and compares each name and each parameter."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy.stubtest", "slotmq", "--concise"),
            *("--mypy-config-file", str(ROOT / "pyproject.toml")),
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    found = [line for line in done.stdout.splitlines() if line.startswith(STUBBED)]
    # The test sees something: these are not in the class
    assert [line.split()[0] for line in found] == list(FOUND), done.stdout + done.stderr
    assert all(callable(getattr(Broker(), name.rpartition(".")[2])) for name in FOUND)


def test_the_stubs_have_every_limit() -> None:
    stub = (ROOT / "lib/slotmq/__init__.pyi").read_text()
    assert [name for name in vars(Limits()) if f"    {name}: int\n" not in stub] == []
