"""`python -m slotmq_tools.dev.spec`: the coverage table; status 1 where something is wrong."""

import sys
from pathlib import Path

import click

from . import statements
from .coverage import Coverage, collect

TESTS = Path(__file__).resolve().parents[3] / "host_tests"


@click.command()
@click.option("--quiet", is_flag=True, help="Print only the counts, and what is wrong.")
def main(quiet: bool) -> None:
    """Print which tests stand for which statements of the MQTT standards."""
    tests = collect(TESTS)
    versions = statements.versions()
    wrong = [f"MQTT {name}: no such version" for name in tests if name not in versions]
    for version in versions:
        texts, reasons = statements.load(version), statements.reasons(version)
        coverage = Coverage(version, texts, reasons, tests.get(version, {}))
        if not quiet:
            click.echo("\n".join([*coverage.table(), ""]))
        click.echo(coverage.count())
        wrong += [f"MQTT {version}, {fault}" for fault in coverage.faults()]
    for line in wrong:
        click.echo(line, err=True)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
