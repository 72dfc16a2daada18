"""`python -m maskwright` is the `maskwright` command."""

from .cli import main

main()
