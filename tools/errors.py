"""ToolError, and how text from outside (topics, file names) is made safe to print."""


class ToolError(Exception):
    """A failure that its message explains; the command line prints it without a traceback."""


def shown(value: object) -> str:
    """The value as one line of printable text: control characters are escaped."""
    text = value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
    return "".join(one if one.isprintable() else _escaped(one) for one in text)


def _escaped(one: str) -> str:
    return one.encode("unicode_escape").decode()
