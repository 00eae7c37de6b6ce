"""`slotmq run`: starts the broker on CPython or MicroPython, in the foreground or background.

launcher.py           runs the broker here, or as a child process on MicroPython
boot_micropython.py   what that child process runs
pages_micropython.py  its tables take memory only as they are used
orders.py             signals, passed to the broker as bytes on its standard input
daemon.py             `-d`: detaches from the terminal once the broker listens
"""
