"""Models in native PyTorch: what config.json says (`spec`), the weights (`weights`), the forward pass (`decoder`)."""
