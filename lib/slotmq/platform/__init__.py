# platform: what differs between runtimes and ports, and what every module may use:
# sockets, file systems, the heap and its lock, loading on demand, the log, arrays.
