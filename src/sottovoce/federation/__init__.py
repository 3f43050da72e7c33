"""The roles and rules of a federation: what agents and the server hold, say and do."""
