"""A scenario that is wrong: a line for each key, exit status 2, and nothing is written."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from slotmq_tools import cli

GOOD = """
duration = "10 s"
board = "RPI_PICO_W"
[[clients]]
name = "sensor"
publish = [{ topic = "t", every = "1 s" }]
"""
FLASH = '[persistence]\nsize = "256 KB"\n'


def complaints(tmp_path: Path, text: str | bytes) -> list[str]:
    """The lines on standard error, without the file's name."""
    file = tmp_path / "bad.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    out = tmp_path / "report.html"
    done = CliRunner().invoke(cli.main, ["sim", str(file), "--out", str(out)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert not list(tmp_path.glob("*report*"))
    lines = done.stderr.splitlines()
    start = f"Error: {file}: "
    told = [line for line in lines if line.startswith(start)]
    assert told == [line for line in lines if not line.startswith("bad.toml, ")]
    return [line.removeprefix(start) for line in told]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("duration = ", "no TOML: "),
        (b"title = '\xff'", "cannot be read: "),
        (GOOD.replace('duration = "10 s"', ""), "duration: is missing: how long it goes on"),
        ('duration = "1 h"', "clients: is missing: [[clients]], see `slotmq sim --keys`"),
        ('duration = "1 h"\nclients = []', "clients: expected at least one group"),
        ('duration = "1 h"\nclients = 3', "clients: expected tables, as [[clients]]"),
        ('duration = "1 h"\nclients = [3]', "clients[0]: expected a table"),
        (GOOD.replace("duration", "duratoin"), "duratoin: no such key; did you mean duration?"),
        (GOOD.replace("10 s", "10 parsecs"), "duration: expected a time from 1 s to 3650 d"),
        (GOOD.replace('"10 s"', "true"), "duration: expected a time"),
        (GOOD.replace('"10 s"', "0.5"), "duration: expected a time"),
        (GOOD.replace("RPI_PICO_W", "PICO"), "board: expected one of "),
        (GOOD.replace("[[", "seed = -1\n[["), "seed: expected a whole number from 0"),
        (GOOD + "count = 0", "clients[0].count: expected a whole number from 1 to 5,000, not 0"),
        (GOOD + "count = 1.5", "clients[0].count: expected a whole number"),
        (GOOD + "count = true", "clients[0].count: expected a whole number"),
        (GOOD + 'version = "4"', 'clients[0].version: expected one of "3.1", "3.1.1", "5.0"'),
        (GOOD + "version = 5", "clients[0].version: expected one of"),
        (GOOD + "clean = 1", "clients[0].clean: expected true or false, not 1"),
        (GOOD + 'subscribe = "a/#/b"', "clients[0].subscribe: expected topic filters"),
        (GOOD + "subscribe = [1]", "clients[0].subscribe: expected topic filters"),
        (GOOD + 'subscribe = "$share/g/t"', 'clients[0].subscribe: $share is for version "5.0"'),
        (GOOD + 'link = "wifi"', "clients[0].link: expected a name in links, lan, not 'wifi'"),
        (GOOD + 'expiry = "1 h"', 'clients[0].expiry: is for version "5.0" with clean = false'),
        (GOOD + 'online_for = "1 h"', "clients[0].online_for: online_for and offline_for"),
        (GOOD + "will = 3", "clients[0].will: expected a table"),
        (GOOD + "will = { topic = '+' }", "clients[0].will.topic: expected a topic name"),
        (GOOD + "count = 3\n[[clients]]\nname = 'sensor-2'", "clients[1].name: a group "),
        (GOOD.replace('"t"', '"$SYS"'), "clients[0].publish[0].topic: expected a topic name"),
        (GOOD.replace('"t"', '"t/#"'), "clients[0].publish[0].topic: expected a topic name"),
        (GOOD.replace(', every = "1 s"', ""), "clients[0].publish[0]: expected either every"),
        (GOOD.replace('s" }', 's", rate = 1 }'), "clients[0].publish[0]: expected either"),
        (GOOD.replace('s" }', 's", qos = 3 }'), "clients[0].publish[0].qos: expected a whole"),
        (GOOD.replace('s" }', 's", payload = 3 }'), "clients[0].publish[0].payload: expected"),
        (GOOD + '[[clients]]\nname = "sensor"', "clients[1].name: a group before has that"),
        (GOOD + "[links.x]\nloss = 99", "links.x.loss: expected a number from 0 to 50, not 99"),
        (GOOD + '[links.x]\noutage_for = "1 s"', "links.x.outage_every: is missing"),
        (GOOD + '[links.x]\noutage_every = "1 s"', "links.x.outage_for: is missing"),
        (GOOD + '[links.x]\noutage_for = 6\noutage_every = 10', "links.x.outage_for: expected at"),
        (GOOD + '[links.x]\nlatency = "2 min"', "links.x.latency: expected a time from 0"),
        (GOOD + "[limits]\nmesages = 3", "limits.mesages: expected the name of a capacity"),
        (GOOD + "[limits]\nmessages = 0", "limits.messages: expected a number from 1 to 65000"),
        (GOOD + "[limits]\nmessages = '9'", "limits.messages: expected a whole number, not '9'"),
        (GOOD + "[limits]\nsessions = 2", "limits.sessions: expected sessions: at least connect"),
        (GOOD + "[limits]\nconnections = 5", "limits.connections: at most 4 on RPI_PICO_W, which"),
        (GOOD + "limits = 3", "clients[0].limits: no such key"),
        ("limits = 3\n" + GOOD, "limits: expected a table, [limits]"),
        (GOOD + "[settings]\nport = 1", "settings.port: no such key; see slotmq sim"),
        (GOOD + "[settings]\nmax_qoss = 3", "settings.max_qoss: no such key; did you mean"),
        (GOOD + "[settings]\nmax_qos = 3", "settings.max_qos: expected a number from 0 to 2"),
        (GOOD + "[settings]\nmax_qos = [3]", "settings.max_qos: expected true, false, a number"),
        (GOOD + '[settings]\nmax_qos = "1\\nport 1"', "settings.max_qos: expected true, false"),
        (GOOD + "[settings]\nwhen_full = { messages = 'x' }", "settings.when_full.messages: "),
        (GOOD + "[persistence]\nmedium = 'fat'", "persistence.medium: expected one of"),
        (GOOD + "[persistence]\nsize = '32 KB'", "persistence.size: at least "),
        (
            GOOD.replace('board = "RPI_PICO_W"', "") + "[persistence]\nmedium = 'flash'",
            "persistence.size: at least 2,235,056 KB for what a computer's limits may hold: name",
        ),
        (GOOD + "[persistence]\nsize = '32 KB'\nmedium = 'littlefs'", "persistence.size: "),
        (GOOD.replace('s" }', 's", payload = 2048 }'), "clients[0].publish[0].payload: at most"),
        (GOOD.replace('"t"', '"' + "t" * 257 + '"'), "clients[0].publish[0].topic: at most 256"),
        (GOOD + 'version = "5.0"\n[settings]\nmqtt_versions = 3', "clients[0].version: "),
        (GOOD.replace("sensor", 33 * "s") + "[limits]\nclient_id_bytes = 32", "clients[0].name: "),
        (GOOD + "will = { topic = '" + "t" * 257 + "' }", "clients[0].will.topic: at most 256"),
        (GOOD + FLASH + "block = 3", "persistence.block: expected bytes from 1,024"),
        (
            GOOD + FLASH + "block = 3000",
            "persistence.block: expected bytes from 1,024 to 65,536, a multiple of 256, as ",
        ),
        ("power_cut_every = 60\npower_off_for = 60\n" + GOOD, "power_off_for: expected less"),
    ],
)  # fmt: skip
def test_a_line_for_what_is_wrong(tmp_path: Path, text: str | bytes, expected: str) -> None:
    (line,) = complaints(tmp_path, text)
    assert line.startswith(expected)
    assert len(line) < 300


def test_every_wrong_key_is_told(tmp_path: Path) -> None:
    text = GOOD.replace("10 s", "x").replace("1 s", "y") + "colour = 1\ncount = 0"
    lines = complaints(tmp_path, text)
    assert [line.partition(": ")[0] for line in lines] == [
        *("clients[0].publish[0].every", "clients[0].colour", "clients[0].count", "duration"),
    ]
    text = GOOD + "[limits]\nmessages = 0\nconnections = 5\nfoo = 1\n[settings]\nmax_qos = 9"
    assert [line.partition(": ")[0] for line in complaints(tmp_path, text)] == [
        *("limits.messages", "limits.foo", "settings.max_qos", "limits.connections"),
    ]
