"""A client that does not read does not delay others, with lwIP's 8,000 bytes for all sockets."""

import pytest

from host_tests.board.conftest import Deployed

from .pressure import LOSES_LARGE, measured


@pytest.mark.parametrize(
    ("size", "qos"),
    [(64, 0), (64, 1), (500, 0), (500, 1), (900, 0), pytest.param(900, 1, marks=LOSES_LARGE)],
)
def test_a_client_that_does_not_read_is_disconnected_and_others_are_served(
    board: Deployed, size: int, qos: int
) -> None:
    measured(board, size, qos)
