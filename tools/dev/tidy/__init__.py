"""Holds the repository to its own rules, and says how large its files and functions are."""
