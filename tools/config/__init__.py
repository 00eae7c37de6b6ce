"""The configuration file on a computer: its keys, and a check without a start."""
