"""What the tests with real clients share."""

import itertools

import pytest

_numbers = itertools.count()


@pytest.fixture
def base() -> str:
    """A topic, and a start of client ids, that no other test uses on the same broker."""
    return f"interop{next(_numbers)}"
