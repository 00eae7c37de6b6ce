# main.py - the program that a board starts: network and broker. `slotmq deploy` copies it. An
# application without `slotmq deploy` has a main.py of its own (docs/embed.md, "As a library").
try:
    from slotmq_run import boot_counter
except Exception as error:  # boot_counter.py is missing or damaged; another start would not help
    print("slotmq: safe mode: %r: `slotmq deploy` mends it" % error)
else:
    boot_counter.run()
