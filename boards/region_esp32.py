"""The journal's flash region on an ESP32: the data partition named slotmq.

The stock partition table has none; the board's README.md describes how to add it. The folders of
these boards link to this file, since one more module would cost heap.
"""


def region():
    """The partition as a block device; None: there is none."""
    from esp32 import Partition

    found = Partition.find(Partition.TYPE_DATA, label="slotmq")
    return found[0] if found else None
