"""The HTTP server: OpenAI's interface, and what operators need beside it. Needs the extra `maskwright[server]`."""
