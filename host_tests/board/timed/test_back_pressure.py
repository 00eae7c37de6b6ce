"""A client that does not read, on lwIP's memory of 8,000 bytes for all: nobody waits for it."""

import pytest

from host_tests.board.conftest import Deployed

from .pressure import measured


@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("size", [64, 500, 900])
def test_who_does_not_read_is_ended_and_the_others_are_served(
    board: Deployed, size: int, qos: int
) -> None:
    measured(board, size, qos)
