"""Many requests in a file, answered without a client that waits: OpenAI's batches, one line of JSON for each request and answer."""
