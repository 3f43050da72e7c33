"""From a folder to running processes: projects, keys, Flower's commands, rehearsals."""
