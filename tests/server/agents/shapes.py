"""Requests as agents send them: which members there are and of which kinds, with texts of our own.

Sources: the agents' public repositories and documentation, and public reports of people who recorded their traffic: for Codex the
twelve members that a recording lists, its custom tool `apply_patch` and the types of tools it adds; for Claude Code Anthropic's
reference and reports on gateways; for OpenHands, Cline, Open WebUI and Continue what their providers for OpenAI's interface build.
"""

from __future__ import annotations

from typing import Any

PATCH = r"""
start: begin_patch hunk+ end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?
hunk: add_hunk | delete_hunk | update_hunk
add_hunk: "*** Add File: " filename LF add_line+
delete_hunk: "*** Delete File: " filename LF
update_hunk: "*** Update File: " filename LF change?
filename: /(.+)/
add_line: "+" /(.*)/ LF -> line
change: (change_context | change_line)+ eof_line?
change_context: ("@@" | "@@ " /(.+)/) LF
change_line: ("+" | "-" | " ") /(.*)/ LF
eof_line: "*** End of File" LF
%import common.LF
"""


def function(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"name": name, "description": f"The tool {name}.", "parameters": parameters, "strict": False}


TEXT = {"type": "string"}
COMMAND = {"type": "array", "items": {"type": "string"}, "description": "The command to execute"}
CHAT_TOOLS = [{"type": "function", "function": function("execute_bash", command=TEXT, is_input={"enum": ["true", "false"]})}]

CODEX: dict[str, Any] = {
    "model": "default",
    "instructions": "You are a coding agent running in a terminal.",
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "<permissions instructions>"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context></environment_context>"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "add a file"}]},
        {"type": "reasoning", "summary": [], "content": None, "encrypted_content": None},
        {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "call_1"},
        {"type": "function_call_output", "call_id": "call_1", "output": '{"output":"a\\n","metadata":{"exit_code":0}}'},
        {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"', "call_id": "call_2"},
        {"type": "function_call_output", "call_id": "call_2", "output": "failed to parse function arguments"},
        {"type": "custom_tool_call", "status": "completed", "call_id": "call_3", "name": "apply_patch", "input": "*** Begin Patch\n"},
        {"type": "custom_tool_call_output", "call_id": "call_3", "output": "invalid patch"},
        {"type": "local_shell_call", "call_id": "call_4", "status": "completed", "action": {"type": "exec", "command": ["ls"]}},
        {"type": "local_shell_call_output", "call_id": "call_4", "output": None},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}], "phase": "commentary"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on"}]},
    ],
    "tools": [
        {"type": "function", **function("shell", command=COMMAND), "output_schema": None},
        {"type": "function", **function("update_plan", plan={"type": "array", "items": TEXT}), "defer_loading": False},
        {
            "type": "custom",
            "name": "apply_patch",
            "description": "Use the apply_patch tool to edit files.",
            "format": {"type": "grammar", "syntax": "lark", "definition": PATCH},
        },
        {"type": "web_search", "external_web_access": False},
        {"type": "image_generation", "output_format": "png"},
        {"type": "namespace", "name": "mcp__docs", "description": "Docs", "tools": [{"type": "function", **function("find", q=TEXT)}]},
        {"type": "local_shell"},
        {"type": "tool_search", "execution": "client", "description": "Searches tools", "parameters": {"type": "object"}},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "0199a213-81c0-7800-8aa1-bbab2a035a53",
    "text": {"verbosity": "low"},
    "client_metadata": {"x-codex-installation-id": "0199a213"},
}

NUMBER = {"type": "number"}


def _said(role: str, *texts: str) -> dict[str, Any]:
    return {"type": "message", "id": f"msg_{role}", "role": role, "content": [{"type": "input_text", "text": text} for text in texts]}


def _open_function(name: str, required: list[str], **properties: Any) -> dict[str, Any]:
    made = function(name, **properties)
    return {"type": "function", **made, "parameters": {**made["parameters"], "required": required}}


CODEX_RECORDED: dict[str, Any] = {  # by version 0.169 with --output-schema, after a call
    "model": "default",
    "stream": True,
    "input": [
        _said("developer", "You are a coding agent. Be brief."),
        _said("developer", "<skills_instructions>", "<permissions instructions>"),
        _said("user", "<environment_context></environment_context>"),
        _said("user", "List the files."),
        {"type": "function_call", "status": "completed", "id": "item_0", "name": "exec_command", "arguments": '{"cmd":"ls"}', "call_id": "call_1"},
        {"type": "function_call_output", "id": "fco_1", "call_id": "call_1", "output": "Chunk ID: 536df4\nProcess exited with code 0\nOutput:\na\n"},
        {"type": "function_call", "id": "item_1", "namespace": "multi_agent_v1", "name": "close_agent", "arguments": '{"target":"a"}', "call_id": "call_2"},
        {"type": "function_call_output", "id": "fco_2", "call_id": "call_2", "output": "agent with id a not found"},
        _said("user", "And now?"),
    ],
    "tools": [
        _open_function(
            "exec_command",
            ["cmd"],
            cmd=TEXT,
            login={"type": "boolean"},
            max_output_tokens=NUMBER,
            prefix_rule={"type": "array", "items": TEXT},
            sandbox_permissions={"type": "string", "enum": ["use_default", "require_escalated"]},
            yield_time_ms=NUMBER,
        ),
        _open_function("write_stdin", ["session_id"], session_id=NUMBER, chars=TEXT),
        {
            "type": "namespace",
            "name": "multi_agent_v1",
            "description": "Tools for spawning and managing sub-agents.",
            "tools": [_open_function("close_agent", ["target"], target=TEXT), _open_function("spawn_agent", [], message=TEXT, fork_context={"type": "boolean"})],
        },
        {"type": "web_search", "external_web_access": True},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"summary": "auto"},
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "01a216ce-deb4-7202-9c2b-fbcb53a39bb4",
    "text": {
        "format": {
            "type": "json_schema",
            "strict": True,
            "name": "codex_output_schema",
            "schema": {"type": "object", "properties": {"city": {**TEXT, "maxLength": 20}, "count": {"type": "integer"}}, "required": ["city", "count"], "additionalProperties": False},
        }
    },
    "client_metadata": {"x-codex-installation-id": "0199a213", "x-codex-window-id": "01a216c5:0"},
}

CLAUDE_CODE: dict[str, Any] = {
    "model": "default",
    "max_tokens": 32000,
    "temperature": 1,
    "stream": True,
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2"},
        {"type": "text", "text": "You are an agent.", "cache_control": {"type": "ephemeral"}},
    ],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "<system-reminder>today</system-reminder>"},
                {"type": "text", "text": "list files", "cache_control": {"type": "ephemeral"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "so", "signature": "unsigned"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}, "caller": {"type": "direct"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.py", "is_error": False},
                {"type": "tool_result", "tool_use_id": "toolu_2"},
                {"type": "text", "text": "go on", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
            ],
        },
    ],
    "tools": [
        {
            "name": "Bash",
            "description": "Runs a command.",
            "input_schema": {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": {"command": TEXT, "timeout": {"type": "number"}},
                "required": ["command"],
                "additionalProperties": False,
            },
        },
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 8},
    ],
    "metadata": {"user_id": "user_1_account__session_2"},
    "thinking": {"type": "adaptive"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "output_config": {"effort": "medium"},
}

OPENHANDS: dict[str, Any] = {
    "model": "default",
    "messages": [
        {"role": "system", "content": [{"type": "text", "text": "You are OpenHands.", "cache_control": {"type": "ephemeral"}}]},
        {"role": "user", "content": [{"type": "text", "text": "list files"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "index": 0, "function": {"name": "execute_bash", "arguments": '{"command": "ls"'}}],
        },
        {"role": "tool", "content": None, "tool_call_id": "c1", "name": "execute_bash"},
        {"role": "user", "content": [{"type": "text", "text": "go on"}]},
    ],
    "tools": CHAT_TOOLS,
    "tool_choice": "auto",
    "temperature": 0.0,
    "top_p": 1.0,
    "stop": ["</function"],
    "metadata": {"trace_version": "1"},
}

CLINE: dict[str, Any] = {
    "model": "default",
    "messages": [
        {"role": "system", "content": "You are Cline."},
        {"role": "user", "content": [{"type": "text", "text": "<task>\nlist files\n</task>"}, {"type": "text", "text": "<environment_details>"}]},
        {"role": "assistant", "content": "<thinking>", "tool_calls": None},
        {"role": "user", "content": "[ERROR] You did not use a tool."},
    ],
    "temperature": 0,
    "max_tokens": None,
    "reasoning_effort": None,
    "stream": True,
    "stream_options": {"include_usage": True},
    "tools": None,
}

OPEN_WEBUI: dict[str, Any] = {
    "model": "default",
    "stream": True,
    "stream_options": {"include_usage": True},
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": [{"type": "text", "text": "again"}]},
    ],
    "max_tokens": 64,
    "temperature": 0.8,
    "top_p": 0.9,
    "seed": None,
    "stop": [],
    "frequency_penalty": 0,
    "logit_bias": {},
}

CONTINUE_CHAT: dict[str, Any] = {
    "model": "default",
    "messages": [{"role": "user", "content": [{"type": "text", "text": "explain"}]}],
    "max_tokens": 64,
    "stream": True,
    "stream_options": {"include_usage": True},
    "parallel_tool_calls": False,
    "tools": [{**tool, "type": "function"} for tool in CHAT_TOOLS],
}

CONTINUE_AUTOCOMPLETE: dict[str, Any] = {
    "model": "default",
    "prompt": "<fim_prefix>def f(<fim_suffix>\n<fim_middle>",
    "max_tokens": 32,
    "temperature": 0.01,
    "stop": ["<fim_prefix>", "\n\n", "/src/", "#- coding: utf-8", "```"],
    "stream": True,
    "presence_penalty": None,
    "suffix": None,
}

SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "codex": ("/v1/responses", CODEX),
    "codex, recorded": ("/v1/responses", CODEX_RECORDED),
    "claude code": ("/v1/messages?beta=true", CLAUDE_CODE),
    "openhands": ("/v1/chat/completions", OPENHANDS),
    "cline": ("/v1/chat/completions", CLINE),
    "open webui": ("/v1/chat/completions", OPEN_WEBUI),
    "continue, chat": ("/v1/chat/completions", CONTINUE_CHAT),
    "continue, autocomplete": ("/v1/completions", CONTINUE_AUTOCOMPLETE),
}
