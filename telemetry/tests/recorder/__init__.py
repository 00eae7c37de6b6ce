"""What the broker's recorder writes and answers, over TCP, on both runtimes."""
