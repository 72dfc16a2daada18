"""Grammars that ship with the package, in GBNF. Data only: `maskwright generate --grammar NAME` finds them."""
