"""What tools made for vLLM ask beside OpenAI's interface: whether the server lives, how busy it is, how it was started."""
