"""Maskwright as a grammar backend of SGLang: `--grammar-backend maskwright`. SGLang finds it by itself where both are installed.

backend        the two classes that SGLang calls
registration   how it learns of them
"""

from .backend import MaskwrightGrammar, MaskwrightGrammarBackend
from .registration import NAME, TESTED, register

__all__ = ["NAME", "TESTED", "MaskwrightGrammar", "MaskwrightGrammarBackend", "register"]
