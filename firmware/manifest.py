# manifest.py - the firmware's modules frozen: `include("firmware/manifest.py")` in a board's.
metadata(description="Brings up a board's network and runs slotmq.", version="0.1.0")  # noqa: F821
package("slotmq_run")  # noqa: F821
