"""A client that does not read does not delay others, with lwIP's 8,000 bytes for all sockets."""

import pytest

from host_tests.board.conftest import Deployed

from .pressure import measured


@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("size", [64, 500, 900])
def test_a_client_that_does_not_read_is_disconnected_and_others_are_served(
    board: Deployed, size: int, qos: int
) -> None:
    measured(board, size, qos)
