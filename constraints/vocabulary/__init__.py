"""What tokens are: bytes for each id, the byte trie over them, and the tables that all constraints of a vocabulary share.

In: a tokenizer, or a list of byte strings. Out: `Vocabulary`, and for compiled code one int32 array (`packed_vocabulary.py`).
"""
