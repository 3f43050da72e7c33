"""`python -m sottovoce.cli`."""

from sottovoce.cli import main

main()
