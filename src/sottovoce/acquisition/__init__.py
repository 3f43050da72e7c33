"""Where to go next: what is maximised over the space, and how."""
