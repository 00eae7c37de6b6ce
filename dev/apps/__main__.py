"""`make apps`: a round with each application, over each transport, on both runtimes."""

import subprocess
import tempfile
from pathlib import Path

import click

from slotmq_tools.errors import ToolError

from .applications import APPLICATIONS, Application
from .broker import TRANSPORTS, House, Place, broker, round_trip

_ENDS_IN_S = 20


def _play(one: Application, transport: str, runtime: str) -> str:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with broker(runtime, folder) as ports:
            house = House(ports["plain"])
            (folder / "app").mkdir()
            place = Place(transport, ports[transport], folder / "certs", folder / "app")
            command, environment = one.start(place)
            with (folder / "app.log").open("w") as log:
                process = subprocess.Popen(
                    command, env=environment, cwd=folder / "app", stdout=log, stderr=log
                )
                try:
                    found = round_trip(house, process, one.request, one.answer, one.seconds)
                finally:
                    process.terminate()
                    try:
                        process.wait(_ENDS_IN_S)
                    except subprocess.TimeoutExpired:
                        process.kill()
                        process.wait()
            house.close()
        if found != "good":
            told = [line for line in (folder / "app.log").read_text().splitlines() if line.strip()]
            click.echo("\n".join(f"    {line[:160]}" for line in told[-8:]), err=True)
    return found


@click.command()
@click.argument("names", nargs=-1, type=click.Choice([one.name for one in APPLICATIONS]))
@click.option("--transport", "transports", multiple=True, type=click.Choice(TRANSPORTS))
@click.option(
    "--runtime",
    "runtimes",
    type=click.Choice(["cpython", "micropython"]),
    multiple=True,
    default=["cpython", "micropython"],
)
def main(names: tuple[str, ...], transports: tuple[str, ...], runtimes: tuple[str, ...]) -> None:
    """Run these applications (all), and print a line for each round; status 1: one has failed."""
    click.echo("| application | version | transport | runtime | result |\n|---|---|---|---|---|")
    is_good = True
    for one in APPLICATIONS:
        if names and one.name not in names:
            continue
        for transport in one.transports:
            for runtime in runtimes:
                if transports and transport not in transports:
                    continue
                try:
                    version = one.version()
                    found = _play(one, transport, runtime)
                except ToolError as error:
                    version, found = "-", f"not installed: {error}"
                is_good = is_good and found == "good"
                click.echo(f"| {one.name} | {version} | {transport} | {runtime} | {found} |")
    raise SystemExit(not is_good)


if __name__ == "__main__":
    main()
