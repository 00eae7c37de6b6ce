"""Where an ESP32's journal lies: the data partition of the name slotmq, if there is one.

The stock partition table has none. A line of one's own gives it 64 blocks, which the
partition for files, `vfs`, must leave:

    slotmq, data, undefined, , 0x40000
"""


def region():
    """That partition, which is a block device; None: there is none."""
    from esp32 import Partition

    found = Partition.find(Partition.TYPE_DATA, label="slotmq")
    return found[0] if found else None
