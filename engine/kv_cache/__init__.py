"""Keys and values of tokens in blocks of 16: the pool that counts their users, the tree that knows prefixes, and host memory.

In: token ids of sequences. Out: the blocks in which their keys and values are, and plans of what moves.
"""
