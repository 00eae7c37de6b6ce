"""The same with more memory for lwIP, on custom firmware (docs/firmware.md)."""

from pathlib import Path

from host_tests.board.conftest import Deployed
from slotmq_dev.emulator import image

from .pressure import measured

CONF = """\
listener 1883
allow_anonymous true
limit connections 8
limit sessions 12
limit tcp_bytes 31000
"""


def firmware() -> Path:
    return image.build().own


def test_a_client_that_does_not_read_is_disconnected_and_others_are_served(
    board: Deployed,
) -> None:
    board.deploy(CONF)
    measured(board, 900, 1)
