"""The same with more of lwIP's memory, on a firmware of one's own (docs/firmware.md)."""

from pathlib import Path

from host_tests.board.conftest import Deployed
from slotmq_tools.emulator import image

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


def test_who_does_not_read_is_ended_and_the_others_are_served(board: Deployed) -> None:
    board.deploy(CONF)
    measured(board, 900, 1)
