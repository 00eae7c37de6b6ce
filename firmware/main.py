# main.py - what a board runs when it starts: the network and the broker. An application
# has its own (README.md, "As a library"). `slotmq deploy` puts it there.
from slotmq_run import boot

boot.run()
