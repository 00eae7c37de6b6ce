"""The tests of slotmq that run on a computer."""
