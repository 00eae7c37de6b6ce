"""firmware/ in a process, with the real broker and fakes of a port's modules."""
