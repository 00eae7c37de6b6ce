"""`slotmq harvest`: recordings from boards, over USB or MQTT or copied, into a folder of bundles.

segments.py  what a segment is: its header, and how far its records are whole
manifest.py  MANIFEST.jsonl, the folder's one list of what is safe, and its lock
store.py     segments on their way into a bundle: pieces, partial/, bundles/
compact.py   small bundles into large ones
network.py   a board's ring over MQTT: heads, ranges, the time
usb.py       a board's ring over its serial line
copies.py    segments that were copied by hand
collect.py    the order of a harvest: what is new, fetch it, bundle it
plan.py    of a board's ring: what is new, and which of it may grow still
headers.py     what a board says of its segments itself
command.py   the command with its options
"""
