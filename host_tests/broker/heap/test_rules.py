"""A board with an acl_file, in the heap that deploy demands for it: all clients are served, and
what the rules deny is not delivered."""

from contextlib import closing
from pathlib import Path

import pytest

from slotmq_tools import boards
from slotmq_tools.deploy import steps

from .test_firmware import RULES, native_code
from .test_presets import Deployed

COLLECTOR = 131 / 128  # its tables are a part of the heap
AT_THE_PROMPT = 800  # bytes in use


@pytest.mark.parametrize("name", ["RPI_PICO_W", "ESP32_GENERIC"])
def test_every_client_is_served(name: str, tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.write_bytes(b"topic readwrite news\ntopic write secret\n" + RULES)
    conf = tmp_path / "deployed.conf"
    conf.write_text("listener 1883\nallow_anonymous true\nacl_file rules\n")
    board = boards.load(name)
    need, _ = steps.heap_needed(board, conf)
    need -= native_code(board, "") if board.mcu.startswith("rp2") else 0
    heap = int(need * COLLECTOR) + AT_THE_PROMPT
    with closing(Deployed(name, tmp_path, f"acl_file {rules}\n", heap=heap)) as running:
        running.serves(running.limits.connections)
        reader, writer = running.clients[:2]
        reader.subscribe("#")
        writer.publish("secret", b"x", 1)
        writer.publish("news", b"last", 1)
        topics = [each.topic for each in reader.receive_all()]
        assert "news" in topics and "secret" not in topics
