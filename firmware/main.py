# main.py - what a board runs when it starts: the network and the broker. An application
# has its own (README.md, "As a library"). `slotmq deploy` puts it there.
try:
    from slotmq_run import starts
except Exception as error:  # what counts the starts is not whole: no new start would mend that
    print("slotmq: safe mode: %r: `slotmq deploy` mends it" % error)
else:
    starts.run()
