"""Requests as client libraries build them, with their peculiarities: members that are null, integers written as floats, contents in
parts, words of other interfaces, members that belong to another server. Texts are our own.

Sources: the libraries' public repositories and documentation.
"""

from __future__ import annotations

from typing import Any

from .shapes import TEXT, function

CHAT, RESPONSES, MESSAGES, COMPLETIONS, COUNT = (
    "/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/completions", "/v1/messages/count_tokens",
)  # fmt: skip
NULLS = (
    "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_tokens", "metadata", "modalities",
    "n", "parallel_tool_calls", "prediction", "presence_penalty", "reasoning_effort", "response_format", "seed", "service_tier", "stop",
    "store", "stream", "stream_options", "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user", "web_search_options",
    "verbosity", "prompt_cache_key", "safety_identifier", "max_completion_tokens", "extra_body", "data_sources", "extra_headers",
)  # fmt: skip
USER = {"role": "user", "content": "What is the weather in Oslo?"}
CALLED = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
WEATHER = function("weather", city=TEXT)
TOOL = {"type": "function", "function": WEATHER}
FLAT_TOOL = {"type": "function", **WEATHER}
PERSON = {"type": "object", "properties": {"name": TEXT, "age": {"type": "integer"}}, "required": ["name", "age"], "additionalProperties": False}
ANTHROPIC_TOOL = {"name": "weather", "description": "The weather.", "input_schema": WEATHER["parameters"]}
SAID_NULLS = {"audio": None, "function_call": None, "tool_calls": None, "refusal": None, "name": None, "annotations": None}


def chat(*messages: Any, **more: Any) -> tuple[str, dict[str, Any]]:
    return CHAT, {"model": "embedded", "messages": list(messages) or [USER], **more}


def responses(given: Any, **more: Any) -> tuple[str, dict[str, Any]]:
    return RESPONSES, {"model": "embedded", "input": given, **more}


def messages(*said: Any, path: str = MESSAGES, **more: Any) -> tuple[str, dict[str, Any]]:
    return path, {"model": "embedded", "messages": list(said) or [USER], **more}


# What is answered.
LIBRARIES: dict[str, tuple[str, dict[str, Any]]] = {
    "every member is null": chat({**USER, **SAID_NULLS}, **dict.fromkeys(NULLS)),
    "typed numbers of Java and R": chat(
        max_tokens=24.0, n=1.0, seed=7.0, temperature=0, top_p=1, top_k=40.0, logit_bias={"5": -1}, presence_penalty=0, top_logprobs=0.0
    ),
    "go-openai, whose zero is the smallest number": chat(temperature=1.401298464324817e-45, n=1, user="", stop=[], logit_bias={}),
    "go-openai, tools without parameters": chat(
        USER,
        {"role": "assistant", "content": "", "tool_calls": [CALLED]},
        {"role": "tool", "content": "", "tool_call_id": "call_1", "name": "weather"},
        tools=[{"type": "function", "function": {"name": "now", "parameters": None}}, {"type": "function", "function": {"name": "then"}}],
        tool_choice="auto",
        parallel_tool_calls=True,
        metadata={},
    ),
    "openai for .NET": chat(
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "developer", "content": "Be kind."},
        USER,
        {"role": "assistant", "tool_calls": [CALLED]},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "sunny"}, {"type": "text", "text": ", 9 degrees"}]},
        stream=True,
        stream_options={"include_usage": True},
        tools=[TOOL],
        tool_choice="none",
    ),
    "semantic kernel": chat(
        {"role": "system", "content": "Be brief.", "name": None},
        USER,
        temperature=1,
        top_p=1,
        presence_penalty=0,
        frequency_penalty=0,
        response_format={"type": "json_schema", "json_schema": {"name": "Person", "description": None, "strict": True, "schema": PERSON}},
        tools=[{"type": "function", "function": {**WEATHER, "name": "WeatherPlugin-get_weather", "strict": None}}],
        tool_choice="auto",
        logit_bias={},
    ),
    "langchain4j": chat(
        USER,
        {"role": "assistant", "content": None, "tool_calls": [CALLED]},
        {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
        stream=False,
        stop=[],
        user="",
        tools=[TOOL],
        response_format={"type": "json_schema", "json_schema": {"name": "Person", "strict": False, "schema": PERSON}},
        max_completion_tokens=None,
        store=False,
        service_tier="auto",
    ),
    "spring ai": chat(
        USER,
        stream=False,
        temperature=0.7,
        extra_body={},
        tools=[
            {
                "type": "function",
                "function": {
                    "description": "",
                    "name": "weather",
                    "parameters": {"$schema": "https://json-schema.org/draft/2020-12/schema", **WEATHER["parameters"]},
                    "strict": True,
                },
            }
        ],
    ),
    "dspy": chat(
        {"role": "system", "content": "Your input fields are:\n1. `question` (str)"},
        USER,
        {"role": "assistant", "content": "[[ ## answer ## ]]"},
        USER,
        n=1,
        temperature=0.0,
        response_format={"type": "json_object"},
        stream=False,
        extra_headers={},
    ),
    "smolagents": chat(
        {"role": "system", "content": [{"type": "text", "text": "You are an expert assistant."}]},
        {"role": "user", "content": [{"type": "text", "text": "New task:\nadd"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Calling tools:\n[]"}]},
        {"role": "user", "content": [{"type": "text", "text": "Observation:\n"}, {"type": "text", "text": "3"}]},
        stop=["Observation:", "Calling tools:"],
        tools=[
            {"type": "function", "function": {"name": "final_answer", "description": "Ends.", "parameters": {
                "type": "object", "required": ["answer"],
                "properties": {"answer": {"type": "string", "description": "any", "nullable": True}},
            }}}
        ],
        tool_choice="required",
    ),
    "ai sdk, compatible provider": chat(
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Oslo?"}]},
        {"role": "assistant", "content": "", "reasoning_content": "so", "tool_calls": [{**CALLED, "extra_content": {"google": {"thought_signature": "x"}}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": '{"type":"text","value":"sunny"}'},
        stream=True,
        stream_options={"include_usage": True},
        response_format={"type": "json_schema", "json_schema": {"name": "response", "schema": {"$schema": "http://json-schema.org/draft-07/schema#", **PERSON}}},
        tools=[TOOL],
        tool_choice={"type": "function", "function": {"name": "weather"}},
    ),
    "ai sdk, responses": responses(
        [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "input_text", "text": "Oslo?"}]},
            {"type": "reasoning", "id": "rs_1", "encrypted_content": None, "summary": []},
            {"role": "assistant", "content": [{"type": "output_text", "text": "I look."}], "id": "msg_1"},
            {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"city":"Oslo"}', "id": "fc_1"},
            {"type": "function_call_output", "call_id": "call_1", "output": '"sunny"'},
        ],
        text={"format": {"type": "json_schema", "strict": False, "name": "response", "description": None, "schema": PERSON}},
        tools=[FLAT_TOOL, {"type": "web_search_preview", "search_context_size": "low", "user_location": None}],
        tool_choice="auto",
        store=False,
        include=["reasoning.encrypted_content"],
        max_tool_calls=None,
        prompt_cache_key=None,
    ),
    "responses, every member is null": responses(
        "hello",
        **dict.fromkeys(
            ["background", "conversation", "include", "instructions", "max_tool_calls", "metadata", "parallel_tool_calls", "prompt", "previous_response_id", "reasoning", "safety_identifier", "service_tier", "stream", "stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user", "context_management", "prompt_cache_retention"]
        ),
    ),
    "responses, nulls inside": responses(
        [{"type": "message", "role": "user", "status": None, "id": None, "content": [{"type": "input_text", "text": "hi"}]}],
        text={"format": None, "verbosity": None},
        reasoning={"effort": None, "summary": None, "generate_summary": None},
        stream_options={"include_obfuscation": None},
        max_output_tokens=24.0,
        tools=[],
        tool_choice="auto",
        metadata={},
    ),
    "openai-agents, responses": responses(
        [
            {"content": "hello", "role": "user"},
            {"id": "fc_1", "arguments": '{"city":"Oslo"}', "call_id": "call_1", "name": "weather", "type": "function_call", "status": "completed"},
            {"call_id": "call_1", "output": [{"type": "input_text", "text": "sunny"}], "type": "function_call_output"},
        ],
        include=[],
        tools=[{**FLAT_TOOL, "strict": True}],
        instructions="Be brief.",
        parallel_tool_calls=False,
        reasoning={"effort": "none"},
        store=True,
    ),
    "codex, items of tools that are elsewhere": responses(
        [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {"query": "x"}},
            {"type": "tool_search_output", "call_id": "c", "execution": "client", "status": "completed", "tools": []},
            {"type": "mcp_list_tools", "id": "m", "server_label": "docs", "tools": []},
            {"type": "mcp_approval_request", "id": "a", "name": "x", "arguments": "{}", "server_label": "docs"},
            {"type": "mcp_approval_response", "approval_request_id": "a", "approve": True},
            {"type": "compaction", "encrypted_content": "x"},
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b"}]},
            {"type": "message", "role": "user", "content": "now"},
        ],
        tools=[FLAT_TOOL, {"type": "apply_patch"}, {"type": "shell"}],
        tool_choice="auto",
        stream=True,
        service_tier="priority",
        text={"verbosity": "medium"},
        reasoning={"effort": "xhigh", "summary": "detailed"},
    ),
    "several systems, and one at the end": chat(
        {"role": "system", "content": "a"}, {"role": "system", "content": "b"}, USER, {"role": "system", "content": "c"}
    ),
    "the assistant said nothing": chat(USER, {"role": "assistant", "content": []}, USER, {"role": "assistant", "content": "", "tool_calls": []}, USER),
    "it has refused": chat(USER, {"role": "assistant", "content": None, "refusal": "No."}, {"role": "user", "content": [{"type": "text", "text": "Why?"}]}),
    "parsed messages sent back": chat(
        USER, {"role": "assistant", "content": "{}", "parsed": {}, "refusal": None, "annotations": [], "audio": None, "function_call": None}, USER
    ),
    "reasoning sent back": chat(
        USER,
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "so", "signature": "s"}, {"type": "text", "text": "Yes."}],
            "reasoning": "so",
            "reasoning_details": [{"type": "reasoning.text", "text": "so"}],
            "thinking_blocks": [],
            "provider_specific_fields": None,
        },
        USER,
    ),
    "options of a stream that is none": chat(stream=False, stream_options={"include_usage": False}),
    "null options of a stream": chat(stream=True, stream_options={"include_usage": None}),
    "calls in parallel without tools": chat(parallel_tool_calls=True, tool_choice="auto", tools=[]),
    "no alternatives": chat(logprobs=False, top_logprobs=0),
    "the choice in an object": chat(tools=[TOOL], tool_choice={"type": "none"}),
    "texts that are nothing": chat(
        model="", tool_choice="", reasoning_effort="", verbosity="", user="", service_tier="", prompt_cache_key="", chat_template=""
    ),
    "usage of a stream of events": responses("hi", stream=True, stream_options={"include_usage": True, "include_obfuscation": False}),
    "a call with members of other kinds": chat(
        USER, {"role": "assistant", "content": None, "tool_calls": [{**CALLED, "custom": None, "index": 0}]},
        {"role": "tool", "tool_call_id": "call_1", "content": [], "name": ""},
    ),
    "any tool": chat(tools=[TOOL], tool_choice="any"),
    "a tool as the responses name it": chat(tools=[FLAT_TOOL], tool_choice={"type": "function", "name": "weather"}),
    "gemini's budgets": chat(reasoning_effort="none", extra_body={}),
    "completions of old clients": (
        COMPLETIONS,
        {"model": "embedded", "prompt": ["a"], "best_of": 1, "logprobs": None, "echo": False, "suffix": "", "n": 1.0, "user": "", "stop": None, "logit_bias": None, "max_tokens": 8.0},
    ),
    "tokens as floats": (COMPLETIONS, {"model": "embedded", "prompt": [5.0, 6.0, 7.0], "max_tokens": 8}),
    "claude code, tools that Anthropic runs": messages(
        {"role": "user", "content": [{"type": "text", "text": "find"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
                {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "mcp_tool_use", "id": "m", "name": "x", "server_name": "s", "input": {}},
                {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": False, "content": []},
                {"type": "text", "text": "Found.", "citations": None},
                {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [{"type": "text", "text": "sunny"}, {"type": "tool_reference", "tool_name": "weather"}],
                    "cache_control": None,
                    "is_error": None,
                },
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a page"}, "title": "Page", "citations": {"enabled": True}},
                {"type": "search_result", "source": "https://example.com", "title": "Found", "content": [{"type": "text", "text": "a line"}]},
            ],
        },
        tools=[ANTHROPIC_TOOL, {"type": "bash_20250124", "name": "bash"}, {"type": "mcp_toolset", "mcp_server_name": "s"}, {"type": "memory_20250818", "name": "memory"}],
        tool_choice={"type": "auto", "disable_parallel_tool_use": True},
        max_tokens=24.0,
        thinking={"type": "enabled", "budget_tokens": 1024},
        betas=["interleaved-thinking-2025-05-14"],
        anthropic_beta=["context-management-2025-06-27"],
        anthropic_version="bedrock-2023-05-31",
        context_management={"edits": [{"type": "clear_tool_uses_20250919"}]},
        metadata={"user_id": None},
        mcp_servers=[],
        container=None,
        top_k=5,
    ),
    "anthropic, every member is null": messages(
        **dict.fromkeys(("system", "tools", "tool_choice", "thinking", "metadata", "stop_sequences", "stream", "temperature", "top_k", "top_p"))
        | dict.fromkeys(("output_config", "output_format", "service_tier", "container", "mcp_servers", "inference_geo", "cache_control")),
        max_tokens=24,
    ),
    "anthropic, results that are nothing": messages(
        USER,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": None}]},
        max_tokens=24,
        tools=[{**ANTHROPIC_TOOL, "type": None, "cache_control": None}],
        system=[],
    ),
    "claude code counts": messages(
        {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]},
        path=COUNT,
        system=[{"type": "text", "text": "You are.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        tools=[ANTHROPIC_TOOL, {"type": "web_search_20250305", "name": "web_search"}],
        thinking={"type": "enabled", "budget_tokens": 1024},
        tool_choice={"type": "auto"},
        context_management={"edits": []},
        output_config={"effort": "high"},
        betas=["token-counting-2024-11-01"],
    ),
}

# What is refused, and the place that is named.
PNG = "data:image/png;base64,iVBORw0KGgo="
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "an image": (*chat({"role": "user", "content": [{"type": "text", "text": "?"}, {"type": "image_url", "image_url": {"url": PNG}}]}), "messages[0].content[1]"),
    "an image as Anthropic has it": (
        *messages({"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x"}}]}, max_tokens=4),
        "messages[0].content[0]",
    ),
    "a document that is no text": (
        *messages({"role": "user", "content": [{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "x"}}]}, max_tokens=4),
        "messages[0].content[0]",
    ),
    "an image that a tool gave": (
        *responses([{"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": PNG}]}]),
        "input[0].output[0]",
    ),
    "audio": (*chat({"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}]}), "messages[0].content[0]"),
    "options of no stream": (*chat(stream_options={"include_usage": True}), "stream_options"),
    "a stop string that is none": (*chat(stop=""), "stop"),
    "half a token": (*chat(max_tokens=4.5), "max_tokens"),
    "a number as a text": (*chat(max_tokens="24"), "max_tokens"),
    "a tool that there is not": (*chat(tools=[TOOL], tool_choice={"type": "function", "function": {"name": "other"}}), "tool_choice"),
    "a choice without tools": (*chat(tool_choice="required"), "tool_choice"),
    "gemini's types": (
        *chat(tools=[{"type": "function", "function": {"name": "f", "parameters": {"type": "OBJECT", "properties": {}}}}]),
        "tools",
    ),
    "members meant for a client": (*chat(extra_body={"google": {"thinking_config": {}}}), "extra_body"),
    "functions of old clients": (*chat(functions=[WEATHER], function_call="auto"), "functions"),
    "a role of another interface": (*chat({"role": "model", "content": "x"}), "messages[0].role"),
    "parts of another interface": (*chat({"role": "user", "parts": [{"text": "x"}]}), "messages[0].content"),
    "no messages": (*chat(messages=[]), "messages"),
    "an unknown member of a block": (*messages({"role": "user", "content": "x", "id": "y"}, max_tokens=4), "messages[0].id"),
    "no limit": (*messages(), "max_tokens"),
    "an item of nobody": (*responses([{"type": "item_reference", "id": "msg_0"}]), "input[0]"),

}
