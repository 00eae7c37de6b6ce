# status: what the broker reports of itself: the $SYS topics and the texts of the log.
