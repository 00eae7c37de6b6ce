"""`python -m slotmq_dev.fuzz --inputs 10000000`: a campaign against both runtimes.

Each runtime's broker is started with the configuration TIGHT and gets so many inputs. The seed is
printed first; `--seed` sends the same inputs again.
"""

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from slotmq_tools import passwd
from slotmq_tools.ports import LOOPBACK, free_port

from . import TIGHT
from .feeding import Feeder, feed_many
from .frames import Frames
from .inputs import Inputs
from .link import Noticed

_ROUND = 5000  # inputs of a line of output; each round has its own seed
_STOPS_IN_S = 20


@contextmanager
def _broker(runtime: str) -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    """The addresses of a broker process, for TCP and for WebSocket; it must end with status 0."""
    address, web = (LOOPBACK, free_port()), (LOOPBACK, free_port())
    with tempfile.TemporaryDirectory() as folder:
        users, conf = Path(folder) / "users", Path(folder) / "slotmq.conf"
        passwd.put(users, "user", "unknown")
        more = f"listener {address[1]} {address[0]}\nallow_anonymous true\npassword_file {users}\n"
        more += f"listener {web[1]} {web[0]}\nprotocol websockets\n"
        conf.write_text(TIGHT + more)
        run = [sys.executable, "-m", "slotmq_tools.cli", "run", "--runtime", runtime]
        with subprocess.Popen([*run, "-c", conf], stdout=subprocess.PIPE) as process:
            assert process.stdout
            click.echo(process.stdout.readline().decode().strip())
            try:
                yield address, web
            finally:
                process.terminate()
                status = process.wait(_STOPS_IN_S)
    if status:
        raise Noticed(f"the broker ended with status {status}")


def _campaign(runtime: str, count: int, seed: int, kind: type[Inputs]) -> None:
    with _broker(runtime) as (address, web):
        feeder, start = Feeder(address, web if kind is Frames else None), time.monotonic()
        for done in range(0, count, _ROUND):
            feed_many(feeder, seed + done, min(_ROUND, count - done), kind)
            feeder.clean()
            sent = min(done + _ROUND, count)
            rate = sent / (time.monotonic() - start)
            click.echo(f"{runtime}: {sent} inputs, {rate:.0f} per second, no client affected")
        feeder.close()


@click.command()
@click.option("--inputs", "count", default=100_000, show_default=True, help="For each runtime.")
@click.option("--seed", type=int, help="Send the inputs of this seed, instead of a random one.")
@click.option(
    "--runtime",
    "runtimes",
    type=click.Choice(["cpython", "micropython"]),
    multiple=True,
    default=["cpython", "micropython"],
)
@click.option("--frames", is_flag=True, help="In frames of WebSocket.")
@click.option("--log", type=click.Path(path_type=Path), help="Also write a failure to this file.")
def main(
    count: int, seed: int | None, runtimes: tuple[str, ...], frames: bool, log: Path | None
) -> None:
    """Send malformed and random bytes to brokers, and check that no other client is affected."""
    seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    for runtime in runtimes:
        click.echo(f"{runtime}: seed {seed}")
        try:
            _campaign(runtime, count, seed, Frames if frames else Inputs)
        except Noticed as noticed:
            if log:
                log.write_text(f"{noticed}\n")
            raise click.ClickException(str(noticed)) from None


if __name__ == "__main__":
    main()
