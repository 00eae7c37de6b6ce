"""`python -m host_tests.sim`: run a campaign; print a command that replays each failure."""

import os
import time

import click

from . import campaign, coverage_check

_SOME = click.IntRange(1)
_NUMBER = click.IntRange(0, (1 << 30) - 1)


def _indexes(_context: click.Context, _option: click.Parameter, value: str) -> tuple[int, ...]:
    words = value.split(",") if value else []
    if not all(word.isdecimal() and word.isascii() for word in words):
        raise click.BadParameter(f"expected numbers as 0,2,3, not {value}")
    return tuple(map(int, words))


@click.command()
@click.option(
    "--seeds", "count", type=_SOME, default=100, show_default=True, help="Number of seeds."
)
@click.option("--first", type=_NUMBER, default=0, show_default=True, help="The first seed.")
@click.option(
    "--steps",
    type=_SOME,
    default=campaign.STEPS,
    show_default=True,
    help="Steps until the faults stop.",
)
@click.option(
    "--clients",
    "only",
    default="",
    callback=_indexes,
    help="Run only these clients of the seed: 0,2,3.",
)
@click.option(
    "--runtime",
    type=click.Choice([*campaign.RUNTIMES, *campaign.OTHERS]),
    default="cpython",
)
@click.option(
    "--jobs", default=os.cpu_count() or 1, show_default=True, help="Processes at a time."
)
@click.option("--shrink/--no-shrink", default=True, show_default=True)
def main(
    count: int,
    first: int,
    steps: int,
    only: tuple[int, ...],
    runtime: str,
    jobs: int,
    shrink: bool,
) -> None:
    """Run seeds. The exit status is 1 if a check failed, or if the campaign covered too little."""
    start = time.monotonic()
    if only:
        found = campaign.run(runtime, first, count, steps, only)
    else:
        found = campaign.run_many(runtime, first, count, steps, jobs)
    with click.progressbar(found, length=count, label=runtime) as bar:
        outcomes = list(bar)
    took = time.monotonic() - start
    click.echo(f"{count} seeds, {count / took:.1f} a second, {coverage_check.averages(outcomes)}")
    events = campaign.totals(outcomes)
    click.echo(", ".join(f"{name} {events[name]}" for name in sorted(events)))
    failed = [outcome for outcome in outcomes if outcome.failure]
    for outcome in failed[:10]:
        click.echo(str(outcome))
        if shrink:
            click.echo(f"  {campaign.shrink(runtime, outcome).replay}")
    if failed:
        raise click.ClickException(f"{len(failed)} of {count} seeds failed")
    gaps = coverage_check.gaps(outcomes) if runtime in campaign.RUNTIMES and not only else []
    if gaps:
        raise click.ClickException("nothing failed, but " + "; ".join(gaps))


if __name__ == "__main__":
    main()
