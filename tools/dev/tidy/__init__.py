"""Holds the repository to those of its rules that ruff and mypy do not know."""
