"""The command `slotmq` and everything else that runs on the host.

    cli.py, entry.py        the command line; one folder for each larger command:
    run/ deploy/ journal/ scenario/
                            `slotmq run`, `deploy`, `inspect`, `sim`
    passwd.py               `slotmq passwd`
    pack/                   packs and compiles the broker for a board
    sim/                    simulated sockets, flash and clock
    fetch/ cache.py         programs from Debian; the folder for all that is fetched or built
    micropython.py          where MicroPython is

Modules import each other relatively: the installed package is called `slotmq_tools`, but
`python3 -m tools.bootstrap` runs before anything is installed.
"""
