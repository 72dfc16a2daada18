"""Low-rank adapters (LoRA) on top of a model: read from files, held in slots, one or none for each request of a batch.

In: a folder of peft, or a GGUF file. Out: what the linear layers of the model add for the rows that want it.
"""
