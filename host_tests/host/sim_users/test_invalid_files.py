"""An invalid scenario: a line for each wrong key, exit status 2, and no file is written."""

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
PUBLISH = "clients[0].publish[0]"
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
    reported = [line for line in lines if line.startswith(start)]
    assert reported == [line for line in lines if not line.startswith("bad.toml, ")]
    return [line.removeprefix(start) for line in reported]


@pytest.mark.parametrize(
    ("text", "path", "word"),
    [
        ("duration = ", "not TOML", ""),
        (b"title = '\xff'", "cannot be read", ""),
        (GOOD.replace('duration = "10 s"', ""), "duration", "missing"),
        ('duration = "1 h"', "clients", "missing"),
        ('duration = "1 h"\nclients = []', "clients", "at least one"),
        ('duration = "1 h"\nclients = 3', "clients", "list"),
        ('duration = "1 h"\nclients = [3]', "clients[0]", "table"),
        (GOOD.replace("[[", "late_aftre = 1\n[["), "late_aftre", "mean late_after?"),
        (GOOD + "late_after = 1", "clients[0].late_after", "--keys"),
        (GOOD.replace("every", "first = 1, everi = 2, every"), f"{PUBLISH}.everi", "every?"),
        (GOOD.replace("10 s", "10 parsecs"), "duration", "time from 1 s to 3650 d"),
        (GOOD.replace('"10 s"', "true"), "duration", "time from 1 s"),
        (GOOD.replace('"10 s"', "0.5"), "duration", "time from 1 s"),
        (GOOD.replace("RPI_PICO_W", "PICO"), "board", "one of"),
        (GOOD.replace("[[", "seed = -1\n[["), "seed", "0, not -1"),
        (GOOD + "count = 0", "clients[0].count", "1, not 0"),
        (GOOD + "count = 5001", "clients[0].count", "5000, not 5001"),
        (GOOD + "count = 1.5", "clients[0].count", "whole number, not 1.5"),
        (GOOD + "count = true", "clients[0].count", "whole number"),
        (GOOD + 'version = "4"', "clients[0].version", "'3.1', '3.1.1' or '5.0', not '4'"),
        (GOOD + "version = 5", "clients[0].version", "'5.0', not 5"),
        (GOOD + "clean = 1", "clients[0].clean", "true or false, not 1"),
        (GOOD + 'subscribe = "a/#/b"', "clients[0].subscribe[0]", "topic filter"),
        (GOOD + 'subscribe = ["a", "$share/g"]', "clients[0].subscribe[1]", "topic filter"),
        (GOOD + "subscribe = [1]", "clients[0].subscribe[0]", "text, not 1"),
        (GOOD + "subscribe = 1", "clients[0].subscribe", "list"),
        (GOOD + 'subscribe = "$share/g/t"', "clients[0].subscribe", "5.0"),
        (GOOD + 'link = "wifi"', "clients[0].link", "lan"),
        (GOOD + 'expiry = "1 h"', "clients[0].expiry", "clean = false"),
        (GOOD + 'online_for = "1 h"', "clients[0].online_for", "offline_for"),
        (GOOD + "will = 3", "clients[0].will", "table"),
        (GOOD + "will = { topic = '+' }", "clients[0].will.topic", "topic name"),
        (GOOD + "count = 3\n[[clients]]\nname = 'sensor-2'", "clients[1].name", "sensor-2"),
        (GOOD + "[[clients]]\nname = 'two words'", "clients[1].name", "pattern"),
        (GOOD.replace('"t"', '"$SYS"'), f"{PUBLISH}.topic", "topic name"),
        (GOOD.replace('"t"', '"t/#"'), f"{PUBLISH}.topic", "topic name"),
        (GOOD.replace(', every = "1 s"', ""), f"{PUBLISH}.every", "either every or rate"),
        (GOOD.replace('s" }', 's", rate = 1 }'), f"{PUBLISH}.every", "either"),
        (GOOD.replace('every = "1 s"', "rate = nan"), f"{PUBLISH}.rate", "finite"),
        (GOOD.replace('s" }', 's", qos = 3 }'), f"{PUBLISH}.qos", "0, 1 or 2, not 3"),
        (GOOD.replace('s" }', 's", payload = 3 }'), f"{PUBLISH}.payload", "4, not 3"),
        (GOOD.replace('s" }', 's", payload = "2 GB" }'), f"{PUBLISH}.payload", "2 GB"),
        (GOOD + '[[clients]]\nname = "sensor"', "clients[1].name", "sensor"),
        (GOOD + "[links.x]\nloss = 99", "links.x.loss", "50, not 99"),
        (GOOD + "[links.x]\nlatensy = 9", "links.x.latensy", "mean latency?"),
        (GOOD + '[links.x]\noutage_for = "1 s"', "links.x.outage_every", "missing"),
        (GOOD + '[links.x]\noutage_every = "1 s"', "links.x.outage_for", "missing"),
        (GOOD + "[links.x]\noutage_for = 6\noutage_every = 10", "links.x.outage_for", "half"),
        (GOOD + '[links.x]\nlatency = "2 min"', "links.x.latency", "time from 0 ms to 60 s"),
        (GOOD + "[limits]\nmesages = 3", "limits.mesages", "capacity"),
        (GOOD + "[limits]\nmessages = 0", "limits.messages", "number from 1 to 65000"),
        (GOOD + "[limits]\nmessages = '9'", "limits.messages", "whole number, not '9'"),
        (GOOD + "[limits]\nsessions = 2", "limits.sessions", "the value of connections"),
        (GOOD + "[limits]\nconnections = 5", "limits.connections", "at most 4 on RPI_PICO_W"),
        (GOOD + "limits = 3", "clients[0].limits", "no such key"),
        ("limits = 3\n" + GOOD, "limits", "table"),
        (GOOD + "[settings]\nport = 1", "settings.port", "no such key; see slotmq sim --keys"),
        (GOOD + "[settings]\nmax_qoss = 3", "settings.max_qoss", "did you mean max_qos?"),
        (GOOD + "[settings]\nmax_qos = 3", "settings.max_qos", "from 0 to 2"),
        (GOOD + "[settings]\nmax_qos = [3]", "settings.max_qos", "not [3]"),
        (GOOD + '[settings]\nmax_qos = "1\\nport 1"', "settings.max_qos", "number"),
        (GOOD + "[settings]\nwhen_full = { messages = 'x' }", "settings.when_full.messages", ""),
        (GOOD + "[persistence]\nmedium = 'fat'", "persistence.medium", "'littlefs', not 'fat'"),
        (GOOD + "[persistence]\nsize = '32 KB'", "persistence.size", "at least"),
        (
            GOOD.replace('board = "RPI_PICO_W"', "") + "[persistence]\nmedium = 'flash'",
            "persistence.size", "at least 2,235,056 KB",
        ),
        (GOOD.replace('s" }', 's", payload = 2048 }'), f"{PUBLISH}.payload", "max_packet"),
        (GOOD.replace('"t"', '"' + "t" * 257 + '"'), f"{PUBLISH}.topic", "at most 256"),
        (GOOD + 'version = "5.0"\n[settings]\nmqtt_versions = 3', "clients[0].version", "5.0"),
        (
            GOOD.replace("sensor", 33 * "s") + "[limits]\nclient_id_bytes = 32",
            "clients[0].name", "at most 32",
        ),
        (GOOD + "will = { topic = '" + "t" * 257 + "' }", "clients[0].will.topic", "at most 256"),
        (GOOD + FLASH + "block = 512", "persistence.block", "1024, not 512"),
        (GOOD + FLASH + "block = 3000", "persistence.block", "multiple of 256"),
        ("power_cut_every = 60\npower_off_for = 60\n" + GOOD, "power_off_for", "power_cut_every"),
    ],
)  # fmt: skip
def test_a_line_for_each_error(tmp_path: Path, text: str | bytes, path: str, word: str) -> None:
    (line,) = complaints(tmp_path, text)
    assert line.startswith(f"{path}: ")
    assert word in line
    assert len(line) < 300


def test_every_wrong_key_is_reported(tmp_path: Path) -> None:
    text = GOOD.replace("10 s", "x").replace("1 s", "y") + "colour = 1\ncount = 0"
    lines = complaints(tmp_path, text)
    assert [line.partition(": ")[0] for line in lines] == [
        *("duration", "clients[0].count", f"{PUBLISH}.every", "clients[0].colour"),
    ]
    text = GOOD + "[limits]\nmessages = 0\nconnections = 5\nfoo = 1\n[settings]\nmax_qos = 9"
    assert [line.partition(": ")[0] for line in complaints(tmp_path, text)] == [
        *("limits.messages", "limits.foo", "settings.max_qos", "limits.connections"),
    ]
