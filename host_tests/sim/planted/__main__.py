"""`python -m host_tests.sim.planted`: which seed finds each planted fault?"""

import click

from . import FAULTS, find


@click.command()
@click.argument("words", nargs=-1)
def main(words: tuple[str, ...]) -> None:
    """Plant every fault, or those with one of the words in their name, and look for it."""
    chosen = [fault for fault in FAULTS if not words or any(word in fault.name for word in words)]
    missed = 0
    for fault in chosen:
        seeds, failure = find(fault)
        missed += not seeds
        click.echo(f"{seeds or 'not found':>9}  {fault.name}: {failure[:100]}")
    if missed:
        raise click.ClickException(f"{missed} of {len(chosen)} faults were not found")


if __name__ == "__main__":
    main()
