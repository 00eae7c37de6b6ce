"""Fixtures of the tests with real clients."""

import itertools

import pytest

_numbers = itertools.count()


@pytest.fixture
def base() -> str:
    """A prefix of topics and client ids that no other test on the same broker uses."""
    return f"interop{next(_numbers)}"
