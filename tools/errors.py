"""The one exception that the tools raise for what the user has to know or do, and how they print
what others have chosen."""


class ToolError(Exception):
    """A failure that one line explains; the command line prints it without a traceback."""


def shown(value: object) -> str:
    """As text for a terminal, which obeys no character of it; one line."""
    text = value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
    return "".join(one if one.isprintable() else _escaped(one) for one in text)


def _escaped(one: str) -> str:
    return one.encode("unicode_escape").decode()
