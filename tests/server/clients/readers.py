"""What client libraries make of a stream that a server replays: each reader asks once, and gives what it was told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

import openai

from ..serving import TIMEOUT
from .installed import client_library

Parts: TypeAlias = tuple[str, str, list[tuple[str, Any]]]  # content, reasoning, calls with their arguments
MESSAGES: Any = [{"role": "user", "content": "x"}]


@dataclass
class Replay:
    """A server that answers every request with these bytes."""

    url: str
    stream: bytes = b""


@contextmanager
def replaying() -> Iterator[Replay]:
    replay = Replay("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.send_header("Content-Length", str(len(replay.stream)))
            self.end_headers()
            self.wfile.write(replay.stream)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        replay.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield replay
        finally:
            server.shutdown()
            thread.join()


def openai_client(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


def openai_chat(url: str) -> Parts:
    with openai_client(url) as client, client.chat.completions.stream(model="m", messages=MESSAGES) as stream:
        message = stream.get_final_completion().choices[0].message
    calls = [(call.function.name, call.function.arguments) for call in message.tool_calls or ()]
    return message.content or "", getattr(message, "reasoning_content", None) or "", calls


def openai_responses(url: str) -> Parts:
    with openai_client(url) as client, client.responses.stream(model="m", input="x") as stream:
        response = stream.get_final_response()
    thoughts = [part.text for item in response.output if item.type == "reasoning" for part in item.content or ()]
    calls = [(item.name, item.arguments) for item in response.output if item.type == "function_call"]
    return response.output_text, "".join(thoughts), calls


def anthropic_messages(url: str) -> Parts:
    asking = client_library("anthropic").Anthropic(base_url=url, api_key="none", max_retries=0)
    with asking as client, client.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as stream:
        content = stream.get_final_message().content
    texts = {kind: "".join(getattr(block, kind) for block in content if block.type == kind) for kind in ("text", "thinking")}
    return texts["text"], texts["thinking"], [(block.name, block.input) for block in content if block.type == "tool_use"]


def langchain(url: str, **options: Any) -> Parts:
    model = client_library("langchain_openai").ChatOpenAI(base_url=f"{url}/v1", api_key="none", model="m", max_retries=0, **options)
    whole, *others = list(model.stream(MESSAGES))
    for other in others:
        whole += other
    message = whole  # its reasoning is read of OpenAI's own models alone
    return message.text, "", [(call["name"], call["args"]) for call in message.tool_calls]


def langchain_responses(url: str) -> Parts:
    return langchain(url, use_responses_api=True)


def pydantic_ai(url: str, kind: str = "OpenAIChatModel") -> Parts:
    client_library("pydantic_ai")
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import ModelRequest, TextPart, ThinkingPart, ToolCallPart
    from pydantic_ai.models import openai as models
    from pydantic_ai.providers.openai import OpenAIProvider

    async def read() -> Any:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", timeout=TIMEOUT) as client:
            model = getattr(models, kind)("m", provider=OpenAIProvider(openai_client=client))
            async with model_request_stream(model, [ModelRequest.user_text_prompt("x")]) as stream:
                async for _ in stream:
                    pass
                return stream.get().parts

    parts = asyncio.run(read())  # in a loop that is closed, which the library's own calls without async are not
    text = "".join(part.content for part in parts if isinstance(part, TextPart))
    thought = "".join(part.content for part in parts if isinstance(part, ThinkingPart))
    return text, thought, [(part.tool_name, part.args) for part in parts if isinstance(part, ToolCallPart)]


def pydantic_ai_responses(url: str) -> Parts:
    return pydantic_ai(url, "OpenAIResponsesModel")


def litellm(url: str) -> Parts:
    library = client_library("litellm")
    with openai_client(url) as client:
        chunks = list(library.completion(model="openai/m", client=client, messages=MESSAGES, stream=True))
    message = library.stream_chunk_builder(chunks).choices[0].message
    calls = [(call.function.name, call.function.arguments) for call in message.tool_calls or ()]
    return message.content or "", getattr(message, "reasoning_content", None) or "", calls


READERS: dict[str, tuple[str, Callable[[str], Parts]]] = {  # by library: the endpoint whose stream it reads, and how
    "openai, chat": ("chat", openai_chat),
    "openai, responses": ("responses", openai_responses),
    "anthropic": ("messages", anthropic_messages),
    "langchain, chat": ("chat", langchain),
    "langchain, responses": ("responses", langchain_responses),
    "pydantic-ai, chat": ("chat", pydantic_ai),
    "pydantic-ai, responses": ("responses", pydantic_ai_responses),
    "litellm": ("chat", litellm),
}
