# delivery: a message on its way out: who gets it, its place in a queue, the outgoing buffer.
