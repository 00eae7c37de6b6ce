"""The command line, the tools and the firmware, on a computer."""
