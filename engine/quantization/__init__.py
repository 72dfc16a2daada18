"""Quantised weights of safetensors: what config.json says, how each format stores a matrix, and linear layers of them.

`reading.py` reads "quantization_config" into a `Plan` (`plan.py`): which module is stored by which `Scheme` (`scheme.py`). A format
is a file with its scheme; all become matrices of codes with scales (`kernels/quantized/scaled.py`) while they are loaded
(`engine/models/checkpoint_weights.py`), tensor by tensor. `online.py` makes such matrices of 16-bit weights.
"""
