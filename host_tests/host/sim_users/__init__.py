"""`slotmq sim`: scenarios whose result can be calculated by hand, invalid files, options."""
