"""The one exception that the tools raise for what the user has to know or do."""


class ToolError(Exception):
    """A failure that one line explains; the command line prints it without a traceback."""
