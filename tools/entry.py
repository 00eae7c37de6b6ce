"""The first lines of the command `slotmq`, before all that it imports.

A service manager may send a broker its signals while it still starts. Nothing has changed by
then that they could be about, and they may not end it: until there are handlers
(orders.pass_on_signals) they are ignored.
"""

import sys

from .run import orders


def main() -> None:
    """Run the command, whose default is `run`."""
    if sys.argv[1:2] == ["run"] or all(word.startswith("-") for word in sys.argv[1:2]):
        orders.ignore_signals()
    from . import cli

    cli.main()


if __name__ == "__main__":
    main()
