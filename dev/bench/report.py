"""Shows tables on the terminal, and makes Markdown of them."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table as RichTable

from .tables import Table


def show(tables: Sequence[Table], console: Console) -> None:
    """Print the tables."""
    for table in tables:
        shown = RichTable(title=table.title, title_justify="left")
        for index, column in enumerate(table.columns):
            shown.add_column(column, justify="right" if index else "left")
        for row in table.rows:
            shown.add_row(*row)
        console.print(shown)


def markdown(table: Table) -> str:
    """The table, without its title."""
    ruler = ["---", *(["---:"] * (len(table.columns) - 1))]
    return "\n".join(map(_line, (table.columns, ruler, *table.rows)))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
