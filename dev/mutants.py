"""`python -m slotmq_dev.mutants PATH... --tests TESTS`: how many small faults do tests find?

    python -m slotmq_dev.mutants journal --tests host_tests/broker/unit/journal
    python -m slotmq_dev.mutants access/acl.py v5 --tests host_tests/broker/unit --count 100
    python -m slotmq_dev.mutants delivery tables --seeds 40        # the simulator's first 40 seeds
    python -m slotmq_dev.mutants bridge --seeds 8 --where bridge   # between two brokers

A mutant is a copy of lib/slotmq with one small fault in its syntax tree: `<` is `<=`, a number is
one more, a condition is negated, a statement is gone. A mutant with which the tests pass
*survives*; the score is the share of the others. The same seed chooses the same faults as long as
the sources are the same. Some mutants mean the same as the original, so the aim is not 100 %:
compare the scores of two versions of the tests.
"""

import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import NamedTuple

import click

LIB = Path(__file__).resolve().parent.parent / "lib" / "slotmq"
NOT_HERE = "_viper.py", "_micropython.py"  # CPython does not load these

OTHER: dict[type, type] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


class Site(NamedTuple):
    """A place of a file where a fault can be."""

    file: str  # below lib/slotmq
    at: int  # the node's index in ast.walk()


def sites(file: str) -> Iterator[Site]:
    """All places of a file."""
    for at, node in enumerate(ast.walk(ast.parse((LIB / file).read_text()))):
        if _mutation(node):
            yield Site(file, at)


def mutant(site: Site) -> tuple[str, str]:
    """The file with the fault at this place, and what the fault is."""
    tree = ast.parse((LIB / site.file).read_text())
    node = next(node for at, node in enumerate(ast.walk(tree)) if at == site.at)
    before = ast.unparse(node)
    apply = _mutation(node)
    assert apply
    apply()
    after = "nothing" if isinstance(node, ast.Pass) else ast.unparse(node)
    first = [text.splitlines()[0] for text in (before, after)]
    return ast.unparse(tree), f"{site.file}:{node.lineno}: {first[0]} -> {first[1]}"  # type: ignore[attr-defined]


def _mutation(node: ast.AST) -> Callable[[], None] | None:
    """What changes this node into a faulty one, if anything does."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in OTHER:
            return lambda: node.ops.__setitem__(0, OTHER[type(op)]())
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in OTHER:
            return lambda: setattr(node, "op", OTHER[type(op)]())
        case ast.If(test=test) | ast.While(test=test):
            return lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), test))
        case ast.Return(value=ast.Constant(value=int(n)) as value):
            return lambda: setattr(value, "value", n + 1)
        case ast.AugAssign() | ast.Expr(value=ast.Call()):
            return lambda: _drop(node)
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return lambda: _drop(node)
    return None


def _drop(node: ast.stmt) -> None:
    node.__class__ = ast.Pass


def with_body(file: str, function: str, body: str) -> str:
    """The file with this body in place of the function's. ValueError: no function, or several."""
    tree = ast.parse((LIB / file).read_text())
    defined = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    (found,) = (node for node in defined if node.name == function)
    found.body = ast.parse(f"def {function}():\n {body}").body[0].body  # type: ignore[attr-defined]
    return ast.unparse(tree)


def simulator(seeds: int, where: str = "", first: int = 0) -> list[str]:
    """The command that runs seeds of the simulator until one fails."""
    runs = f"passes({first}, {seeds}, {where!r})"
    return [sys.executable, "-c", f"from host_tests.sim import run; exit(not run.{runs})"]


class Trial:
    """Runs a command with copies of lib/slotmq."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.command = command
        self.package = folder / "slotmq"
        self.seconds = 600.0  # the most that a run may take
        shutil.copytree(LIB, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        self.env = os.environ | {
            "PYTHONPATH": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
        }

    def passes(self) -> bool:
        try:
            run = subprocess.run(
                self.command,
                cwd=LIB.parents[1],
                env=self.env,
                capture_output=True,
                timeout=self.seconds,
            )
        except subprocess.TimeoutExpired:
            return False  # the fault is an endless loop
        return run.returncode == 0

    def passes_with(self, file: str, text: str) -> bool:
        right = (self.package / file).read_text()
        (self.package / file).write_text(text)
        try:
            return self.passes()
        finally:
            (self.package / file).write_text(right)


def survivors(trials: list[Trial], chosen: list[Site]) -> Iterator[str]:
    """What the command does not find, with a copy of lib/slotmq for each run at a time."""
    start = time.monotonic()
    if not trials[0].passes():
        raise click.ClickException("the tests fail without a fault")
    seconds = 30 + 3 * (time.monotonic() - start)
    free = Queue[Trial]()
    for trial in trials:
        trial.seconds = seconds
        free.put(trial)

    def survives(site: Site) -> str:
        text, what = mutant(site)
        trial = free.get()
        try:
            return what if trial.passes_with(site.file, text) else ""
        finally:
            free.put(trial)

    with ThreadPoolExecutor(len(trials)) as pool:
        yield from filter(None, pool.map(survives, chosen))


def files(paths: tuple[str, ...]) -> list[str]:
    """The files that CPython loads, below lib/slotmq."""
    named = [LIB / path for path in paths]
    for path in named:
        if not path.exists():
            raise click.BadParameter(f"lib/slotmq has no {path.relative_to(LIB)}")
    found = [f for path in named for f in (path.rglob("*.py") if path.is_dir() else [path])]
    return sorted(str(f.relative_to(LIB)) for f in found if not f.name.endswith(NOT_HERE))


@click.command()
@click.argument("paths", nargs=-1, required=True)
@click.option("--tests", multiple=True, help="What pytest runs.")
@click.option("--seeds", default=0, help="The simulator's first seeds, in place of tests.")
@click.option("--where", default="", help="What they run on, as in host_tests/sim/run.py.")
@click.option("--count", default=60, show_default=True, help="How many faults.")
@click.option("--seed", default=1, show_default=True, help="Chooses the faults.")
@click.option("--jobs", default=1, show_default=True, help="How many run at a time.")
@click.option("--least", default=0.0, help="Fail if the score, in percent, is below.")
def main(
    paths: tuple[str, ...],
    tests: tuple[str, ...],
    seeds: int,
    where: str,
    count: int,
    seed: int,
    jobs: int,
    least: float,
) -> None:
    """Plant faults in these files or folders of lib/slotmq, and print which the tests let pass."""
    if not (tests or seeds):
        raise click.UsageError("neither --tests nor --seeds")
    every = [site for file in files(paths) for site in sites(file)]
    chosen = random.Random(seed).sample(every, min(count, len(every)))
    pytest = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", ""]
    command = simulator(seeds, where) if seeds else [*pytest, *tests]
    start = time.monotonic()
    survived = 0
    with tempfile.TemporaryDirectory(prefix="slotmq-mutants-") as folder:
        trials = [Trial(command, Path(folder) / str(job)) for job in range(jobs)]
        for what in survivors(trials, chosen):
            survived += 1
            click.echo(f"survived: {what}")
    score = 100 * (1 - survived / len(chosen))
    found = f"{len(chosen) - survived} of {len(chosen)} (seed {seed}) found"
    click.echo(f"{' '.join(paths)}: {score:.0f} %, {found} in {time.monotonic() - start:.0f} s")
    if score < least:
        raise click.ClickException(f"less than {least} %")


if __name__ == "__main__":
    main()
