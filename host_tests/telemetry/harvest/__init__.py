"""Harvesting: from a board that speaks the contract, and from the broker itself."""
