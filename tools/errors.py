"""ToolError, and what is printed: text from outside (topics, file names), and counts."""


class ToolError(Exception):
    """A failure that its message explains; the command line prints it without a traceback, as it
    does an OSError, with the name of its file."""


def why(error: Exception) -> str:
    """What an error says, in one line of printable text."""
    said = (isinstance(error, OSError) and error.strerror) or str(error)
    told = shown(" ".join(said.split()))
    return told if isinstance(error, OSError | ToolError) else f"{type(error).__name__}: {told}"


def shown(value: object) -> str:
    """The value as one line of printable text: control characters are escaped."""
    text = value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
    return "".join(one if one.isprintable() else _escaped(one) for one in text)


def shown_lines(text: str) -> str:
    """The same of each line."""
    return "\n".join(map(shown, text.split("\n")))


def _escaped(one: str) -> str:
    return one.encode("unicode_escape").decode()


def count(number: int, what: str) -> str:
    """So many of them, in words: 1 board, 2,000 boards."""
    return f"{number:,} {what}" + "s" * (number != 1)
