"""Starts that fail: after an interrupted deploy, with a damaged file, with a loop that hangs.

The watchdog is the emulated chip's.
"""

import json
import time

import pytest

from slotmq_tools.deploy import copying, mqtt_client
from slotmq_tools.deploy.repl import Repl
from slotmq_tools.errors import ToolError

from .conftest import RESET_S, Deployed, reset_until

CORE = "/lib/slotmq/core.mpy"
WALL = "/lib/slotmq_run/wall_clock.py"  # MicroPython takes it before wall_clock.mpy
HANGS = b"""
import time
class Clock:
    def __init__(self, source, link):
        pass
    def follow(self, broker):
        pass
    def step(self, now):
        time.sleep(1000)
"""


class CutOff(Repl):
    """A REPL whose cable is pulled while CORE is written."""

    def write(self, path: str, content: bytes) -> None:
        if path == CORE:
            super().write(path + ".new", content[: len(content) // 2])
            raise ToolError("pulled")
        super().write(path, content)


def test_a_file_is_written_again_if_the_board_resets_meanwhile(
    board: Deployed,
) -> None:
    before = board.board.figures()["bites"]
    content = bytes(range(256)) * 160
    with Repl(board.board.device) as repl:
        repl.run("import machine; machine.WDT(timeout=1000)")
        repl.write("/large", content)
        assert repl.read("/large") == content
        repl.remove(["/large"])
        repl.reset()
    assert board.board.figures()["bites"] == before + 1
    board.wait_until(board.serves, "the broker")


def test_after_an_interrupted_deploy_the_board_is_in_safe_mode_and_the_next_one_continues(
    board: Deployed,
) -> None:
    with CutOff(board.board.device) as repl:
        there = repl.hashes()
        wanted = {CORE: repl.read(CORE) + b"newer", "/lib/slotmq/more.mpy": b"newer"}
        change = copying.Change(wanted, sorted(wanted), [], there)
        with pytest.raises(ToolError, match="pulled"):
            copying.copy(change, repl, print)
        reset_until(repl, "slotmq: safe mode: a deploy of slotmq was interrupted")
    said = board.deploy()
    assert " 1 removed" in said, said  # the incomplete core.mpy
    assert said.endswith(" ms\n")


def test_a_damaged_file_leads_to_safe_mode_after_three_starts(board: Deployed) -> None:
    with Repl(board.board.device) as repl:
        resets = board.board.figures()["resets"]
        repl.write(CORE, b"M\x05 of another MicroPython")
        lines = reset_until(repl, "slotmq: safe mode: 3 starts ended within a minute")
        assert board.board.figures()["resets"] == resets + 4  # one is the test's
        assert sum(line.startswith("Traceback") for line in lines) == 3, lines
        for line in repl.lines(RESET_S):
            if line.startswith("ppp: up"):
                break
        with pytest.raises(mqtt_client.SafeMode, match="ValueError"):
            mqtt_client.system_topics(board.address, mqtt_client.Login())
    assert "\n1 of " in board.deploy()


def test_an_incomplete_file_hangs_micropython_and_the_watchdog_resets_it(board: Deployed) -> None:
    with Repl(board.board.device) as repl:
        bites = board.board.figures()["bites"]
        repl.write(CORE, repl.read(CORE)[:5000])
        reset_until(repl, "slotmq: safe mode: 3 starts ended within a minute")
    assert board.board.figures()["bites"] == bites + 3
    assert "\n1 of " in board.deploy()


def test_a_loop_that_hangs_is_reset_and_the_third_time_the_board_is_in_safe_mode(
    board: Deployed,
) -> None:
    with Repl(board.board.device) as repl:
        network = repl.read("/network.json")
        hanging = json.loads(network) | {"watchdog": 2000, "time": "192.0.2.1"}
        repl.write("/network.json", json.dumps(hanging).encode())
        repl.write(WALL, HANGS)
        began = board.board.figures()
        lines = reset_until(repl, "slotmq: safe mode: 3 starts ended within a minute")
        ended = board.board.figures()
        assert sum("board RPI_PICO_W" in line for line in lines) == 3, lines
        assert (ended["bites"], ended["resets"]) == (began["bites"] + 3, began["resets"] + 4)
        time.sleep(5)  # safe mode has no watchdog
        assert board.board.figures()["bites"] == ended["bites"]
    with Repl(board.board.device) as repl:
        repl.remove([WALL])
    assert board.deploy().endswith(" ms\n")
