"""What only developers of slotmq run; no part of what is installed."""
