"""Firmware with the broker frozen by boards/RPI_PICO_W/manifest.py: deploy, clients, free heap."""

import re
import struct
from pathlib import Path
from typing import Any

from host_tests.broker.wire5 import client as five
from host_tests.broker.wire5 import codec as codec5
from slotmq_dev.emulator import frozen
from slotmq_tools import boards
from slotmq_tools.deploy import copying, steps
from slotmq_tools.deploy.frozen import PACKAGES
from slotmq_tools.deploy.repl import Repl

from .conftest import ANSWER_S, NAME, PORT, Deployed

FAST = Path(__file__).parents[2] / "lib/slotmq/fast"
BLANK = True
OPEN = "listener 1883\nallow_anonymous true\n"
# Publishes the free bytes of heap after a collection.
APP = """\
import gc
import time


def start(broker):
    then = [time.ticks_ms()]

    def step():
        if time.ticks_diff(time.ticks_ms(), then[0]) > 500:
            then[0] = time.ticks_ms()
            gc.collect()
            broker.publish("free", str(gc.mem_free()))

    return step
"""
CLIENTS = 4
REPORT = "slotmq: safe mode: a deploy of slotmq was interrupted"
SETTLED = 5  # messages of APP until modules loaded on demand are unloaded
# The machine code of a function
NATIVE = re.compile(r"fun_data_(\w+)\[\d+\] [^=\n]+\.text[^=\n]+= \{(.*?)\n\};", re.DOTALL)
LOAD, OVER = 0x4800, 0xE001  # ldr rN, [pc, #0]; b over the constant
FREE_MIN = 130_000  # bytes; with the code in files 73,000 are free


def firmware() -> Path:
    return frozen.build()


def connect5(board: Deployed, name: str) -> Any:
    client = five.Client(board.board.reach(PORT))
    client.sock.settimeout(ANSWER_S)
    board.clients.append(client)
    assert client.connect(codec5.connect(name)).code == 0
    return client


def four(board: Deployed) -> list[Any]:
    """Two clients of each version."""
    return [board.connect("a"), board.connect("b"), connect5(board, "c"), connect5(board, "d")]


def code(board: Deployed) -> set[str]:
    """The files that deploy has written, without the configuration."""
    with Repl(board.board.device) as repl:
        return {path for path in repl.hashes() if path.startswith("/lib/") or "main" in path}


def test_deploy_copies_limits_configuration_and_main_but_no_code(board: Deployed) -> None:
    app = board.folder / "free.py"
    app.write_text(APP)
    said = board.deploy(OPEN, "--app", app)
    assert "frozen" in said and "slotmq, slotmq_run\n" in said, said
    assert "\n7 of 7 files" in said and "0 removed" in said, said
    assert said.endswith(" ms\n")  # the test message was received


def test_four_clients_are_served_and_the_code_takes_no_heap(board: Deployed) -> None:
    clients = four(board)
    for client in clients:
        client.subscribe("all", qos=2)
    for n, client in enumerate(clients):
        for qos in (0, 1, 2):
            client.publish("all", b"%d" % n * 100 * qos, qos)
            for each in clients:
                each.receive("all", b"%d" % n * 100 * qos, qos)
    clients[0].subscribe("free", qos=0)
    free = [int(clients[0].receive_many(1)[0].payload) for _ in range(SETTLED)]
    assert free[-1] >= FREE_MIN, free


def constants(code: str) -> list[int]:
    """What such a function reads from within its code."""
    data = bytes(int(each, 16) for each in code.replace("\n", "").split(",") if each.strip())
    return [
        struct.unpack_from("<I", data, at + 4)[0]
        for at in range(0, len(data) - 8, 2)
        if struct.unpack_from("<H", data, at)[0] & ~0x700 == LOAD
        and struct.unpack_from("<H", data, at + 2)[0] == OVER
    ]


def test_no_native_function_depends_on_where_it_lies(tmp_path: Path) -> None:
    """At an odd multiple of 2 such a constant is 0xE001 and the lower half of what it should be.
    That is right for the first one, how many arguments there must be: the most is in the upper."""
    found = {
        name: constants(code) for name, code in NATIVE.findall(frozen.content(NAME, tmp_path))
    }
    sources = [path.read_text() for path in FAST.glob("*_viper.py")]
    assert len(found) == sum(text.count("@micropython.viper\n") for text in sources) > 0
    assert all(first >> 17 == first >> 1 & 0x7FFF for first, *_ in found.values()), found
    assert {name: more for name, (_, *more) in found.items() if more} == {}


def test_frozen_code_goes_before_files_in_lib(board: Deployed) -> None:
    """Such files may be left from a deploy onto stock firmware."""
    board.hang_up()
    with Repl(board.board.device) as repl:
        repl.write("/lib/slotmq/core.mpy", b"of another version")
        for name in PACKAGES:
            repl.write(f"/lib/{name}/__init__.py", b"raise ImportError('of /lib')\n")
        said = repl.run("import slotmq, slotmq_run\nprint(slotmq.__file__, slotmq_run.__file__)")
    assert said.split() == ["slotmq/__init__.py", "slotmq_run/__init__.py"]


def test_an_interrupted_deploy_is_reported(board: Deployed) -> None:
    with Repl(board.board.device) as repl:
        repl.write(copying.MARK_FROZEN, copying.INTERRUPTED)
        repl.reset()
        lines = (line for line in repl.lines(ANSWER_S) if line.startswith("slotmq"))
        assert next(lines).startswith(REPORT)


def test_the_largest_tables_that_deploy_accepts_start_and_old_code_is_removed(
    board: Deployed,
) -> None:
    with Repl(board.board.device) as repl:
        heap = steps.probe(repl).heap
    conf = f"{OPEN}limit message_bytes {largest(board.folder / 'large.conf', heap)}\n"
    board.deploy(conf)
    clients = four(board)
    for client in clients:
        client.subscribe("all", qos=1)
    clients[0].publish("all", b"x" * 1000, 1)
    for client in clients:
        client.receive("all", b"x" * 1000, 1)
    board.hang_up()
    boards_files = (f"{NAME}/limits.mpy", f"{NAME}/region.mpy", "__init__.mpy")
    assert code(board) == {"/main.py", *(f"/lib/slotmq_boards/{name}" for name in boards_files)}


def largest(conf: Path, heap: int) -> int:
    """The largest `limit message_bytes` that deploy accepts for this heap."""
    facts, size, block = boards.load(NAME), 100_352, 2048
    while True:
        conf.write_text(f"{OPEN}limit message_bytes {size}\n")
        if steps.heap_needed(facts, conf, PACKAGES)[0] > heap:
            return size - block
        size += block
