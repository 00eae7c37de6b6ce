"""Checks the repository's own rules, which ruff and mypy do not know."""
