# journal: stores what the broker promises before it leaves, and restores it at a start.
