"""Layers whose weights are in host memory, and come to the device while those before them are computed.

`host_layers.py` chooses such layers and keeps what is read of them, `layer_stream.py` brings them. Nothing else of a model knows:
the tensors that its modules hold lie in memory on the device into which each layer is copied when its turn comes.
"""
