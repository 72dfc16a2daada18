"""Grammars in Greibach's normal form, and what in them says the same: an equal grammar with fewer ways to read a text."""
