"""The simulated machine: clock, poller, TCP connections, flash and file systems.

The real Loop and Broker run on it. Everything random follows from a seed, so that a run can be
repeated. The files run on CPython and on MicroPython.

    numbers   random numbers
    machine   clock, poller, listener; the hash of everything that was sent
    link      a TCP connection with faults
    flash     a block device that loses its power
    disk      file systems that lose it: littlefs, a computer's and FAT; files are in disk_file
"""
