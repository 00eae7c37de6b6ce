"""One folder per board: board.json has its facts, limits.py the preset of capacities."""
