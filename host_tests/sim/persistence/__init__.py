"""The journal's medium, power cuts, and what must be there after a restart."""
