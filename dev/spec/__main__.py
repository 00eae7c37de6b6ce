"""`python -m slotmq_dev.spec`: statements and their tests; status 1 after an error."""

import sys
from pathlib import Path

import click

from . import statements
from .coverage import Coverage, collect

TESTS = Path(__file__).resolve().parents[2] / "host_tests"


@click.command()
@click.option("--quiet", is_flag=True, help="Print only counts and errors.")
def main(quiet: bool) -> None:
    """Print the tests for each statement of the MQTT standards."""
    tests = collect(TESTS)
    versions = statements.versions()
    wrong = [f"MQTT {name}: no such version" for name in tests if name not in versions]
    for version in versions:
        coverage = Coverage(version, statements.load(version), tests.get(version, {}))
        if not quiet:
            click.echo("\n".join([*coverage.table(), ""]))
        click.echo(coverage.count())
        wrong += [f"MQTT {version}, {fault}" for fault in coverage.faults()]
    for line in wrong:
        click.echo(line, err=True)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
