# recorder: what passes through the broker, put down as records in segments of a ring of files.
