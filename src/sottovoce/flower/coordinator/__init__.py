"""What the coordinator runs: calls to the sites, releases, and a journal of both."""
