"""What one party of a federation runs: its trials, its memory, its answers."""
