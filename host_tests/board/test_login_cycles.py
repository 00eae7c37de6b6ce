"""What logins cost on an RP2040: the longest turn, and all clients of the preset one by one.

The stand-ins for sockets are those of the table of cycles. Cycles are counted, so nothing here
depends on how fast the emulator runs. The figures are in docs/board.md.
"""

from pathlib import Path

from slotmq_dev.emulator import cycles
from slotmq_dev.emulator.board import run_script
from slotmq_tools import passwd

CLIENTS = 4  # those of the preset
LONGEST_TURN_MS = 50
ALL_IN_S = 20
# Each client has a user of its own, so that no password was verified before.
GUEST = """
from slotmq import Broker, Settings
from slotmq_boards.RPI_PICO_W.limits import LIMITS

with open("users", "w") as file:
    file.write(USERS)
settings = Settings(password_file="users", allow_anonymous=False, sys_interval=0)
broker = Broker(LIMITS.replaced({"tcp_bytes": 0, "users": 8}), settings)
broker.listen("any", 1883)


def field(text):
    return len(text).to_bytes(2, "big") + text


clients = []
for n in range(CLIENTS):
    stream = Stream()
    body = field(b"MQTT") + b"\\4\\xc2\\0\\0" + field(b"c%d" % n) + field(b"u%d" % n)
    body += field(b"secret%d" % n)
    stream.data = bytes((0x10, len(body))) + body
    clients.append(stream)
    LISTENERS[0].waiting.append(stream)
    EVENTS[:] = [LISTENERS[0].event]
    broker.turn(0)
    EVENTS[:] = [stream.event]
    broker.turn(0)
    EVENTS[:] = []
answered = 0
while answered < CLIENTS:
    before = answered
    mem32[_MARK] = 100
    broker.turn(0)
    answered = sum([stream.size > 0 for stream in clients])
    mem32[_MARK] = 200 if answered == before else 201
print([bytes(stream.sent[:4]) for stream in clients], broker.users.computed)
"""


def test_others_wait_50_ms_at_most_and_all_are_in_within_20_s(tmp_path: Path) -> None:
    users = b"".join(
        passwd.line(f"u{n}", f"secret{n}", passwd.ITERATIONS, bytes(16)) + b"\n"
        for n in range(CLIENTS)
    )
    stand_ins = cycles._GUEST.read_text().partition("from slotmq import")[0]
    script = tmp_path / "guest.py"
    script.write_text(f"CLIENTS, USERS = {CLIENTS}, {users.decode()!r}\n{stand_ins}{GUEST}")
    found = run_script(script, cycles.flash() / "flash.bin", save=False)
    assert not found["errors"], found["errors"]
    accepted = [b"\x20\x02\0\0"] * CLIENTS
    assert found["output"].strip() == f"{accepted} {CLIENTS}"
    marks = [mark for mark in found["marks"] if mark[0] in (100, 200, 201)]
    pairs = list(zip(marks[::2], marks[1::2], strict=True))
    slices = sorted(end[1] - begin[1] for begin, end in pairs if end[0] == 200)
    # The turn that answers handles a CONNECT, and may have to load the modules for that.
    answers = [end[1] - begin[1] for begin, end in pairs if end[0] == 201]
    whole = marks[-1][1] - marks[0][1]
    print(
        f"{len(slices)} turns: {slices[len(slices) // 2]:,} cycles (median), {slices[-1]:,} (most)"
        f"; answers {answers}; each login {whole // CLIENTS:,}"
    )
    assert slices[-1] < LONGEST_TURN_MS * cycles.MHZ * 1000
    assert whole < ALL_IN_S * cycles.MHZ * 1_000_000
