# journal: what was promised, written down before it leaves, and read back at a start.
