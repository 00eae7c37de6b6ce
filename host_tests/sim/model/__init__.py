"""The model: what the broker has promised, and what it may do."""
