"""The wire suite over each transport, with and without the fast path."""
