"""Python types as JSON schemas: a walk over what Pydantic validates with."""
