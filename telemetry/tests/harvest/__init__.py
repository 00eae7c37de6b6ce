"""`slotmq harvest`: from fake boards behind a real broker, over a serial line, from copies."""
