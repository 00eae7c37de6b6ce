"""`slotmq sim`: scenarios whose outcome can be reckoned by hand, bad files, the options."""
