"""The broker, on both runtimes."""
