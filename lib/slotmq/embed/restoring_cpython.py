# restoring_cpython.py - Broker.restore(): the journal of a broker that is a library on CPython.
# The program (app/) and the firmware do the same at their start. Owns nothing. Allocates.
from types import SimpleNamespace

from slotmq.config.settings import ConfError
from slotmq.journal import start


class _Places(dict):
    """Stands for the lines of a configuration, in the texts of errors."""

    def __missing__(self, _key):
        return "Settings"


def restore(broker):
    """-> the open file that keeps other brokers from this journal."""
    if not broker.settings.persistence:
        raise ValueError("restore(): expected Settings(persistence=True)")
    if broker.journal:
        raise RuntimeError("restore(): the journal is there already")
    app = SimpleNamespace(
        broker=broker,
        settings=broker.settings,
        limits=broker.limits,
        board="HOST",
        lines=_Places(),
        lock=None,
    )
    try:
        start.start(app)
    except ConfError as error:
        raise ValueError(str(error)) from None
    return app.lock
