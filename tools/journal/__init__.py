"""`slotmq inspect`: reads a journal file, or a copy of a flash region, and shows it as tables.

schema.py       the fields of each record, from the broker's sources
image.py        the bytes as a medium that the broker's reader can read
contents.py     the last row of each slot
tables.py       these rows as tables for the terminal or SQLite
properties.py   MQTT 5.0 properties as text
"""
