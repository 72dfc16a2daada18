"""SGLang's own interface: /generate, /get_model_info, /flush_cache and /abort_request."""
