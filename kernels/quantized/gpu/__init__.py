"""Products with packed matrices in Triton."""
