"""Where the journal of any ESP32 lies: the data partition of the name slotmq, if there is one.

The stock partition table has none. A line of one's own gives it some, as the board's page tells.
The folders of such boards link to this file: a module more would cost a board heap.
"""


def region():
    """That partition, which is a block device; None: there is none."""
    from esp32 import Partition

    found = Partition.find(Partition.TYPE_DATA, label="slotmq")
    return found[0] if found else None
