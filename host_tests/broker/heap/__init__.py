"""What the broker takes of a board's heap, and that it takes no more while it runs."""
