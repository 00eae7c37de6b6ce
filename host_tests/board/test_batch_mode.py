"""What repeats to the cycle: the emulator itself, and Ctrl-C at any moment of a turn."""

from pathlib import Path

from slotmq_tools.emulator import cycles
from slotmq_tools.emulator.board import run_script

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


def test_what_is_executed_quickly_is_what_rp2040js_executes(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    quick = run_script(script)
    assert not quick["errors"]
    assert len(quick["marks"]) == 6
    assert quick == run_script(script, plain=True)


def test_ctrl_c_leaves_the_heap_unlocked_whenever_it_comes() -> None:
    """Else the REPL finds no memory, and MicroPython stops altogether."""
    found = run_script(CTRL_C, cycles.flash() / "flash.bin", save=False)
    assert found["errors"] == ""
    assert found["output"].strip() == "400"
