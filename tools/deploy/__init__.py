"""`slotmq deploy` and what belongs to it: a broker on a board, from this computer.

repl.py      the board at the other end of a serial line, by mpremote's own code
answers.py   what it is asked about its files, and its answers
payload.py   which files a board gets: compiled modules, configuration, network
frozen.py    which of them are in its firmware
configuration.py  slotmq.conf for a board, and what the broker makes of it
room.py      how much heap a start needs with it
steps.py     what deploy does, one step after the other
started.py   what the board says then, until the broker was tried
backup.py    the board's files in a folder here, and back
saved.py     that folder, and how the next backup takes its place
flash.py     a journal that lies in raw flash, for backup.py
reach.py     a real MQTT client that tries the broker, and reads $SYS
commands.py  the commands with their options
"""
