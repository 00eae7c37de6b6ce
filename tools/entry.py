"""The entry point of the command `slotmq`.

A service manager may send SIGHUP, SIGUSR1 or SIGUSR2 while the command still imports its modules.
Their default action would end the process, so they are ignored until run/orders.py handles them.
"""

import sys

from .run import orders


def main() -> None:
    """Run the command line."""
    if sys.argv[1:2] == ["run"] or all(word.startswith("-") for word in sys.argv[1:2]):
        orders.ignore_signals()
    from . import cli

    cli.main()


if __name__ == "__main__":
    main()
