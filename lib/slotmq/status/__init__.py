# status: what the broker tells of itself: the $SYS topics, and the texts of the log.
