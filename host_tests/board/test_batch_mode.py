"""Batch mode, in which runs repeat: the emulator's fast core, and Ctrl-C at any time in a turn."""

from pathlib import Path

from slotmq_dev.emulator import cycles
from slotmq_dev.emulator.board import run_script

CTRL_C = Path(__file__).with_name("ctrl_c_micropython.py")
# Loops, floats, divisions, tables, strings, exceptions, viper, and garbage collection
PROGRAM = """
import gc, machine
@micropython.viper
def mix(buf: ptr8, n: int) -> int:
    total = 0
    for i in range(n):
        buf[i] = (i * 37) ^ (total >> 3)
        total = (total << 1) + int(buf[i]) - (total >> 20)
    return total
def all_kinds():
    found = {}
    for n in range(300):
        found["key%d" % (n % 37)] = (n * 1.5 / 7, n << n % 40, -n // 3, n % -7)
        try:
            [].pop()
        except IndexError:
            pass
        if n % 50 == 0:
            gc.collect()
            machine.mem32[0x4005800C] = 300 + n
    return sorted(found.items())[::3], mix(bytearray(500), 500)
print(all_kinds())
"""


def test_the_fast_core_gives_the_results_and_cycles_of_rp2040js(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    fast = run_script(script)
    assert not fast["errors"]
    assert len(fast["marks"]) == 6
    assert fast == run_script(script, plain=True)


def test_ctrl_c_at_any_time_leaves_the_heap_unlocked() -> None:
    """With a locked heap the REPL cannot allocate, and MicroPython stops."""
    found = run_script(CTRL_C, cycles.flash() / "flash.bin", save=False)
    assert found["errors"] == ""
    assert found["output"].strip() == "400"
