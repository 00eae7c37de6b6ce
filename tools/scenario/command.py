"""`slotmq sim`: its options. What carries them out is loaded when it is called, since the
other commands need none of it.
"""

from __future__ import annotations

from pathlib import Path

import click

from .. import boards


@click.command("sim", short_help="Simulate a network of clients, and say what a board bears.")
@click.argument("file", metavar="[SCENARIO]", type=click.Path(path_type=Path), required=False)
@click.option(
    "--board",
    type=click.Choice(boards.names()),
    help="Instead of the scenario's [its own, or HOST].",
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Instead of the scenario's.")
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.html|FILE.png",
    help="Write a report with curves, or the curves.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Only the words: no tables, no progress bar.")
@click.option("--example", is_flag=True, help="Print a scenario to begin with.")
@click.option("--keys", is_flag=True, help="Print every key of a scenario.")
@click.option("--spark", "master", metavar="MASTER", help="Run many seeds on Spark: local[2], ...")
@click.option("--seeds", metavar="A..B", help="With --spark: which.")
@click.option("--grid", multiple=True, metavar="LIMIT=N,N,...",
              help="With --spark: and these limits; may be given again.")  # fmt: skip
def sim(
    file: Path | None, board: str | None, seed: int | None, out: Path | None,
    as_json: bool, quiet: bool, example: bool, keys: bool,
    master: str | None, seeds: str | None, grid: tuple[str, ...],
) -> None:  # fmt: skip
    """Run the real broker with the clients of a SCENARIO, and say how it went.

    A scenario is a TOML file. This is one: twelve sensors and a dashboard, for an hour.

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

    Told is how many messages were delivered, late or lost and why, how full each table
    was, which limit was hit first, the RAM, and how the flash wears. Everything follows
    from the file and its seed; the processor is taken to be fast enough.

    `slotmq sim --example > my.toml` is a longer one to begin with.

    With --spark MASTER --seeds A..B a cluster runs the scenario with each seed, and with each
    combination of limits that --grid names, and a table says which board bears it. Without a
    SCENARIO, in the repository, the seeds are those that test the broker itself.
    """
    from . import run

    if master is not None:
        from . import batch_command

        if seeds is None or seed is not None or out is not None:
            raise click.UsageError("--spark goes with --seeds A..B, not with --seed or --out")
        batch_command.run_batch(file, board, master, seeds, grid, as_json=as_json)
        return
    if seeds is not None or grid:
        raise click.UsageError("--seeds and --grid go with --spark MASTER")

    if example or keys:
        click.echo(run.example() if example else run.keys())
        return
    if file is None:
        raise click.UsageError("give a SCENARIO, or --example to see one")
    run.answer(file, {"board": board, "seed": seed}, out, as_json=as_json, quiet=quiet)
