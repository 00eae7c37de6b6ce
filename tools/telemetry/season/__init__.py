"""Seasons: generated recordings of simulated boards, and the truth that the tables must equal.

world.py        a season: boots, pauses, power cuts and harvests, drawn from a seed
board.py        a board: crystal, ring of segments, power cuts; board_clock.py: the time it knows
writer.py       segments, written independently of lib/slotmq and of the decoder
payload.py      payloads whose kind is known
harvest.py      harvests, bundles and their damage
truth.py        what silver must contain, calculated the simple and slow way
clocks.py       the times in it; boot_order.py and own_clock.py: which clocks are trusted
"""
