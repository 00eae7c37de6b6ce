"""The options of `slotmq sim`. The simulator is imported when it is called, since other commands
do not need it.
"""

from __future__ import annotations

from pathlib import Path

import click

from .. import boards


@click.command("sim", short_help="Simulate a network of clients: does a board suffice?")
@click.argument("file", metavar="[SCENARIO]", type=click.Path(path_type=Path), required=False)
@click.option(
    "--board",
    type=click.Choice(boards.names()),
    help="Override the scenario's board.",
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Override the scenario's seed.")
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.html|FILE.png",
    help="Write a report with curves, or the curves.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Print the summary only, no progress bar.")
@click.option("--example", is_flag=True, help="Print an example of a scenario.")
@click.option("--keys", is_flag=True, help="Print all keys of a scenario.")
@click.option("--spark", "master", metavar="MASTER", help="Run many seeds on Spark, as local[2].")
@click.option("--seeds", metavar="A..B", help="With --spark: the seeds.")
@click.option("--grid", multiple=True, metavar="LIMIT=N,N,...",
              help="With --spark: values of a limit; repeat it for more limits.")  # fmt: skip
def sim(
    file: Path | None, board: str | None, seed: int | None, out: Path | None,
    as_json: bool, quiet: bool, example: bool, keys: bool,
    master: str | None, seeds: str | None, grid: tuple[str, ...],
) -> None:  # fmt: skip
    """Run the real broker with the simulated clients of a SCENARIO, and print the result.

    A scenario is a TOML file, for example twelve sensors and a dashboard for an hour:

    \b
        duration = "1 h"
        board = "RPI_PICO_W"
        [[clients]]
        name = "sensor"
        count = 12
        sleeps = true
        publish = [{ topic = "home/{n}/temperature", every = "10 s", qos = 1 }]
        [[clients]]
        name = "dashboard"
        subscribe = ["home/#"]

    The result shows how many messages were delivered, late or lost and why, how full each
    table was, which limit was reached first, the RAM, and the wear of the flash. The same file
    and seed always give the same result. The processor is assumed to be fast enough.

    `slotmq sim --example > my.toml` writes a longer example.

    With --spark MASTER --seeds A..B a cluster runs the scenario with each seed and each
    combination of the limits in --grid, and prints a table of the results.
    """
    from . import run

    if master is not None:
        from . import batch_command

        if file is None or seeds is None or seed is not None or out is not None:
            raise click.UsageError(
                "--spark goes with a SCENARIO and --seeds A..B, not with --seed or --out"
            )
        batch_command.run_batch(file, board, master, seeds, grid, as_json=as_json)
        return
    if seeds is not None or grid:
        raise click.UsageError("--seeds and --grid go with --spark MASTER")

    if example or keys:
        click.echo(run.example() if example else run.keys())
        return
    if file is None:
        raise click.UsageError("give a SCENARIO, or --example to print one")
    run.run(file, {"board": board, "seed": seed}, out, as_json=as_json, quiet=quiet)
