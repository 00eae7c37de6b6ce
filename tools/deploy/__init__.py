"""`slotmq deploy`, `logs`, `status`, `acl` and `backup`: a broker on a board, from this computer.

commands.py        the commands and their options
options.py         options of several commands
link_options.py    options of the board's network
steps.py           the steps of a deploy

repl.py            a board on a serial line, by mpremote's code
listing.py         code that lists a board's files, and the parser of its output
mqtt_client.py     an MQTT client that tests a broker and reads $SYS

board_files.py     compiled modules and main.py
frozen.py          which packages are in the board's firmware
network.py         network.json
configuration.py   slotmq.conf, as the broker reads it
access_files.py    password_file and acl_file, as the broker reads them
heap_estimate.py   how much free heap a start needs
users.py           `slotmq passwd --port`, `slotmq acl`: password_file and acl_file of a board
copying.py         which files are written, in which order, and what is left alone
startup.py         waits until the broker runs, and explains a start that fails

backup.py          saves, restores and erases a board's files
backup_folder.py   the folder of a backup
flash_journal.py   the journal in a board's raw flash
"""
