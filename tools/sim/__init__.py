"""The machine of the simulators: clock, poller, links and flash.

The real Loop and Broker run over these instead of over a machine: nothing in it is left to
chance but what a seed decides. The files run on CPython and on MicroPython.

    numbers   random numbers          trace    the hash of all that was sent
    machine   clock, poller, listener link     a TCP connection, and its faults
    flash     a block device that loses its power     disk  a file system that does
"""
