# manifest.py - the firmware's modules frozen: `include("firmware/manifest.py")` in a board's.
package("slotmq_run", opt=2)  # noqa: F821
