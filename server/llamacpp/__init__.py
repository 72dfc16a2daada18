"""llama.cpp's own interface: /completion, /props, /slots, /apply-template, and its forms of /tokenize and /detokenize.

Source: the server of llama.cpp and its documentation. Members of its answers that cannot be known here are left out.
"""
