# flash_device.py - a file instead of a flash chip: 64 blocks, with MicroPython's extended block
# protocol. serve_flash_micropython.py runs it on MicroPython.


class Device:
    def __init__(self):
        self.file = open("flash", "w+b")  # noqa: PTH123, SIM115
        self.blank = b"\xff" * 256
        for block in range(64):
            self.ioctl(6, block)

    def readblocks(self, block, buf, off=0):
        self.file.seek(block * 4096 + off)
        self.file.readinto(buf)

    def writeblocks(self, block, buf, off=0):
        self.file.seek(block * 4096 + off)
        self.file.write(buf)

    def ioctl(self, op, block):
        if op == 6:
            self.file.seek(block * 4096)
            for _ in range(16):
                self.file.write(self.blank)
            return 0
        return 64 if op == 4 else 4096
