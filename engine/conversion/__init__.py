"""Models written anew, in fewer bits: a folder whose matrices are quantised, or a GGUF file of a folder."""
