"""Maskwright inside the engines that people already run: one module an engine, which is imported only where the engine is.

vllm         a structured-output backend of vLLM
sglang       a grammar backend of SGLang
transformers continuous batching of transformers: one row of masks a request
llamacpp     a logits processor for llama-cpp-python, and vocabularies out of GGUF files
outlines     a backend of Outlines
columns      tables, a piece at a time, for Ray Data
sources      what a request to an engine says, as a constraint
compilers    compiled constraints for the tokenizer that an engine brings
walk         one output's way through its constraint: take, look ahead, go back
device_rows  masks in a table on the device, of which an engine passes on the row
versions     which releases of an engine are tested; others are refused by name
"""
