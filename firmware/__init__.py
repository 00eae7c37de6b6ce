"""What runs around the broker on a board. `slotmq deploy` copies main.py and slotmq_run/ to it."""
