"""Responses that are kept for a while, so that a later request goes on from them: /v1/responses/ID and previous_response_id."""
