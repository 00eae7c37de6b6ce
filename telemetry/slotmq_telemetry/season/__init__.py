"""Recordings of simulated boards, for the demo and for tests.

greenhouse.py   ten days of three boards
board.py        a board: crystal, ring of segments, power cuts, the time that it knows
writer.py       segments, written independently of lib/slotmq and of the decoder
harvest.py      harvests, bundles and their damage
"""
