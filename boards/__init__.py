"""One folder for each board: board.json has its facts, limits.py its capacities."""
