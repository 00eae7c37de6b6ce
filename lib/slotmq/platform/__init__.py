# platform: what differs between runtimes and ports, and services for every module:
# sockets, file systems, the heap and its lock, loading on demand, the log, arrays.
