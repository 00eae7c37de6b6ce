# recorder: records what passes through the broker, in a ring of files called segments.
