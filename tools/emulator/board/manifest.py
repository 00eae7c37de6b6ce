# What the stock image freezes, as far as it is in Debian's sources.
freeze("$(PORT_DIR)/modules")  # noqa: F821
include("$(MPY_DIR)/extmod/asyncio")  # noqa: F821
