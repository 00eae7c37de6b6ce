"""The host side of slotmq: command line, launcher, fetched tools, checks, benchmarks.

Nothing here runs on a board. The modules import each other relatively, since
the folder is imported as `slotmq_tools` when installed and as `tools` by the
set-up (`python3 -m tools.bootstrap`), which runs before anything is installed.
"""
