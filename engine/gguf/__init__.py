"""A GGUF file as what a model folder holds: `config.py` gives its config.json, `names.py` its tensors by the names of a checkpoint,
`tokenizer.py` its tokenizer. The file is mapped, never trusted (`reader.py`), and may be split in several (`files.py`). `writer.py`
writes one anew in other blocks. `sentencepiece.py` also reads the tokenizer.model of folders.

In: a path. Out: dictionaries as config.json and tokenizer_config.json have them, tensors as they are stored.
"""
