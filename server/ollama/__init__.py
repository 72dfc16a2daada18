"""Ollama's interface over the same conversations: /api/chat, /api/generate, /api/tags, /api/version."""
