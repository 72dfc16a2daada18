"""Tools in namespaces, as OpenAI's responses have them: the model knows each by one name, a client by two.

Codex puts the tools of each of its servers into one. A call names the tool and beside it the namespace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .errors import ApiError
from .requested_tools import own_tools

KIND = "namespace"
BETWEEN = "__"


class Namespaces:
    """The tools of a request without namespaces around them. Raises ApiError for two tools of one name, and for what is none."""

    def __init__(self, tools: Sequence[Mapping[str, Any]]) -> None:
        self.tools: list[Mapping[str, Any]] = []  # that a client can run
        self.passed_over: list[str] = []  # places of the others, with their types
        self._names: dict[str, dict[str, str]] = {}  # of those in namespaces, as a client reads them
        plain = {tool.get("name") for tool in tools if tool.get("type") != KIND}
        for index, tool in enumerate(tools):
            if tool.get("type") == KIND:
                self._open(tool, f"tools[{index}]", plain)
            else:
                self._take([tool], [f"tools[{index}]"])

    def told(self, name: str) -> dict[str, str]:
        """The members of a call that say what is called."""
        return self._names.get(name, {"name": name})

    def choice(self, choice: Any) -> Any:
        """A tool choice with the names that the model knows."""
        if not isinstance(choice, Mapping):
            return choice
        if isinstance(tools := choice.get("tools"), list):
            return {**choice, "tools": [each for tool in tools for each in self._chosen(tool)]}
        return joined(choice)

    def _chosen(self, tool: Any) -> Iterator[Any]:
        if isinstance(tool, Mapping) and tool.get("type") == KIND:
            known = (name for name, told in self._names.items() if told["namespace"] == tool.get("name"))
            yield from ({"type": "function", "name": name} for name in known)
        else:
            yield joined(tool) if isinstance(tool, Mapping) else tool

    def _open(self, namespace: Mapping[str, Any], place: str, taken: set[Any]) -> None:
        name, inner = namespace.get("name"), namespace.get("tools")
        if not isinstance(name, str) or not name:
            raise _wrong(f"{place}.name", "is the name of a namespace")
        if not isinstance(inner, list) or not all(isinstance(tool, Mapping) for tool in inner):
            raise _wrong(f"{place}.tools", "is a list of tools")
        known = [joined({**tool, KIND: name}) for tool in inner]
        for index, (tool, made) in enumerate(zip(inner, known, strict=True)):
            if made.get("name") in taken or made.get("name") in self._names:
                reason = f"makes {made['name']!r} of it for the model, which is the name of another tool"
                raise _wrong(f"{place}.tools[{index}].name", reason)
            if made is not tool and isinstance(made.get("name"), str):
                self._names[made["name"]] = {"name": tool["name"], KIND: name}
        self._take(known, [f"{place}.tools[{index}]" for index in range(len(inner))])

    def _take(self, tools: Sequence[Mapping[str, Any]], places: Sequence[str]) -> None:
        for tool, place in zip(tools, places, strict=True):
            kept, passed_over = own_tools([tool])
            self.tools += kept
            self.passed_over += [place + told.removeprefix("tools[0]") for told in passed_over]


def joined(named: Mapping[str, Any]) -> dict[str, Any]:
    """A tool, a call or a choice with the name by which the model knows it, and no namespace beside it."""
    others = {member: value for member, value in named.items() if member != KIND}
    namespace, name = named.get(KIND), named.get("name")
    if not namespace or not isinstance(namespace, str) or not isinstance(name, str):
        return others
    return {**others, "name": namespace.removesuffix(BETWEEN) + BETWEEN + name}


def _wrong(place: str, reason: str) -> ApiError:
    return ApiError(400, f"{place} {reason}", param=place, code="invalid_value")
