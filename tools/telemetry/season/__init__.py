"""Field seasons with a known answer: simulated boards, what befalls them, and the truth."""
