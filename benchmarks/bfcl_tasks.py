"""BFCL v4's single-turn function calls as tasks for `answers.py`: the sets simple (Python), multiple and parallel.

Source: the wheel `bfcl-eval` (Berkeley Function Calling Leaderboard, Apache 2.0), which holds questions and answers. Nothing of it
is installed or run: `pip download --no-deps bfcl-eval` gets the wheel, and only its data are read.

A parameter has a list of values that count as right, and "" in it when it may be left out. The rules are those of the wheel's
`ast_checker.py` for Python, written anew: texts are equal without spaces, case and the signs , . / - _ * ^; an integer counts
as the number that it is where a float is declared; calls of a parallel set may come in any order. Calls are JSON here, so a
value has the type that it has there.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

SETS = {"simple": "simple_python", "multiple": "multiple", "parallel": "parallel"}  # as the wheel's files call them
MOST_CALLS = 8  # that an answer to a question of the parallel set may have; no answer in it has more
OPTIONAL = ""  # among the accepted values: the parameter may be left out
_JSON_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}
_PYTHON_TYPES: Mapping[str, type] = {
    "string": str, "integer": int, "float": float, "boolean": bool, "array": list, "tuple": list, "dict": dict, "any": str,
}  # fmt: skip
_KEPT = ("enum", "maximum", "minimum")
_IGNORED = re.compile(r"[ ,./\-_*^]")

Call = Mapping[str, Any]  # {"name": ..., "arguments": {...}}
Accepted = Mapping[str, Sequence[Any]]  # parameter -> values that are right


@dataclass(frozen=True)
class BfclTask:
    """One question. `expected`: the name and the accepted arguments of each call that answers it."""

    name: str
    kind: str  # "bfcl simple", "bfcl multiple" or "bfcl parallel"
    question: str
    functions: tuple[Mapping[str, Any], ...]
    expected: tuple[tuple[str, Accepted], ...]

    @property
    def is_parallel(self) -> bool:
        return self.kind.endswith("parallel")

    @cached_property
    def prompt(self) -> str:
        told = "\n".join(map(_told, self.functions))
        one = '{"name": the function, "arguments": {...}}'
        many = f"a JSON array with one object {one} for each call that is needed"
        wanted = many if self.is_parallel else f"one JSON object {one}"
        return f"You can call these functions:\n{told}\n\n{self.question}\n\nAnswer with {wanted}, and nothing else."

    @cached_property
    def schema(self) -> dict[str, Any]:
        """What an answer satisfies: one call, or an array of calls."""
        calls = [_call_schema(each) for each in self.functions]
        call = calls[0] if len(calls) == 1 else {"anyOf": calls}
        return {"type": "array", "items": call, "minItems": 1, "maxItems": MOST_CALLS} if self.is_parallel else call

    @property
    def num_fields(self) -> int:
        """Names, and parameters that may not be left out."""
        return sum(1 + len(_needed(accepted)) for _, accepted in self.expected)

    def right_fields(self, answer: Any) -> int:
        """How many of them are right, when expected and given calls are paired, those first that are most alike."""
        given, expected, right = self._calls(answer), list(self.expected), 0
        while given and expected:
            scores = {(e, g): self._right_in(call, *each) for e, each in enumerate(expected) for g, call in enumerate(given)}
            (e, g), score = max(scores.items(), key=lambda item: item[1])
            right += score
            del expected[e], given[g]
        return right

    def is_exact(self, answer: Any) -> bool:
        """Whether the benchmark's own rules accept the answer."""
        given = self._calls(answer)
        if len(given) != len(self.expected):
            return False
        for name, accepted in self.expected:
            found = next((at for at, call in enumerate(given) if self._is_right(call, name, accepted)), None)
            if found is None:
                return False
            given.pop(found)
        return True

    def _calls(self, answer: Any) -> list[Call]:
        """The calls that an answer asks for; those that are none are left out, and then their number is wrong."""
        listed = answer if isinstance(answer, list) else [answer]
        calls = [each for each in listed if isinstance(each, dict) and isinstance(each.get("arguments"), dict)]
        return calls if len(calls) == len(listed) else []

    def _right_in(self, call: Call, name: str, accepted: Accepted) -> int:
        if call.get("name") != name:
            return 0
        declared, arguments = self._declared(name), call["arguments"]
        given = [parameter for parameter in _needed(accepted) if parameter in arguments and parameter in declared]
        return 1 + sum(accepts(declared[parameter], arguments[parameter], accepted[parameter]) for parameter in given)

    def _is_right(self, call: Call, name: str, accepted: Accepted) -> bool:
        if call.get("name") != name:
            return False
        arguments, declared = call["arguments"], self._declared(name)
        required = self._function(name)["parameters"].get("required", ())
        if any(parameter not in arguments for parameter in (*required, *_needed(accepted))):
            return False
        return all(
            parameter in declared and parameter in accepted and accepts(declared[parameter], value, accepted[parameter])
            for parameter, value in arguments.items()
        )

    def _declared(self, name: str) -> Mapping[str, Any]:
        declared: Mapping[str, Any] = self._function(name)["parameters"]["properties"]
        return declared

    def _function(self, name: str) -> Mapping[str, Any]:
        return next(each for each in self.functions if each["name"] == name)


def bfcl(source: Path, kind: str, count: int) -> list[BfclTask]:
    """The first tasks of a set. source: the wheel, or a folder in which it was unpacked."""
    read = _reader(source)
    questions, answers = read(f"BFCL_v4_{SETS[kind]}.json"), read(f"possible_answer/BFCL_v4_{SETS[kind]}.json")
    return [_task(*pair, f"bfcl {kind}") for pair in islice(zip(questions, answers, strict=True), count)]


def json_schema(declared: Mapping[str, Any], *, told: bool = False) -> dict[str, Any]:
    """The JSON Schema of a parameter as BFCL declares it. told: with its description."""
    kind = declared["type"]
    schema: dict[str, Any] = {"type": _JSON_TYPES.get(kind, kind)}
    schema |= {name: declared[name] for name in (*_KEPT, *(("description",) if told else ())) if name in declared}
    if declared.get("properties"):
        schema["properties"] = {name: json_schema(each, told=told) for name, each in declared["properties"].items()}
        schema["required"] = [name for name in declared.get("required", ()) if name in schema["properties"]]
        schema["additionalProperties"] = False
    if "items" in declared and "type" in declared["items"]:
        schema["items"] = json_schema(declared["items"], told=told)
    return schema


def accepts(declared: Mapping[str, Any], value: Any, accepted: Sequence[Any]) -> bool:
    """Whether a value of a declared parameter is one of the accepted ones."""
    kind = declared["type"]
    expected, nested = _PYTHON_TYPES[kind], None
    if kind in ("array", "tuple"):
        nested = _PYTHON_TYPES[declared["items"]["type"]]
    if kind == "float" and type(value) is int:
        value = float(value)
    is_right_type, is_variable = _typed(value, accepted, expected, nested)
    if not is_right_type:
        return False
    if is_variable:
        return value in accepted
    if expected is dict:
        return any(_is_dict_like(value, each) for each in accepted if each != OPTIONAL)
    if nested is dict:
        return any(_are_dicts_like(value, each) for each in accepted)
    if expected is str:
        return _plain(value) in [_plain(each) for each in accepted if isinstance(each, str)]
    if expected is list:
        return [_plain(item) for item in value] in [[_plain(item) for item in each] for each in accepted]
    return value in accepted


def _typed(value: Any, accepted: Sequence[Any], expected: type, nested: type | None) -> tuple[bool, bool]:
    """(the value may be compared, it stands for a variable: its type is that of the accepted values and not the declared one)."""
    given = next((type(each) for each in accepted if each != OPTIONAL), None)
    if type(value) is not expected:
        return given is not None and type(value) is given, True
    if nested is None:
        return True, given not in (None, expected)
    fits = any(not isinstance(each, list) or all(_typed(item, each, nested, None)[0] for item in value) for each in accepted)
    return fits, given not in (None, expected)


def _is_dict_like(given: Mapping[str, Any], accepted: Any) -> bool:
    """Whether members are among the accepted ones, and none is missing that is needed."""
    if any(name not in accepted or _plain(value) not in [_plain(each) for each in accepted[name]] for name, value in given.items()):
        return False
    return all(name in given for name in _needed(accepted))


def _are_dicts_like(given: Sequence[Any], accepted: Any) -> bool:
    return len(given) == len(accepted) and all(
        pair[1] != OPTIONAL and _is_dict_like(*pair) for pair in zip(given, accepted, strict=True)
    )


def _plain(value: Any) -> Any:
    return _IGNORED.sub("", value).lower().replace("'", '"') if isinstance(value, str) else value


def _needed(accepted: Accepted) -> list[str]:
    return [name for name, values in accepted.items() if OPTIONAL not in values]


def _told(function: Mapping[str, Any]) -> str:
    """A function as prompts show it."""
    parameters = json_schema(function["parameters"], told=True)
    return json.dumps({"name": function["name"], "description": function["description"], "parameters": parameters})


def _call_schema(function: Mapping[str, Any]) -> dict[str, Any]:
    properties = {"name": {"const": function["name"]}, "arguments": json_schema(function["parameters"])}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _task(question: Mapping[str, Any], answer: Mapping[str, Any], kind: str) -> BfclTask:
    if question["id"] != answer["id"]:
        raise ValueError(f"the answer to {question['id']} is called {answer['id']}")
    ((*_, message),) = question["question"]  # one turn
    expected = tuple((name, accepted) for call in answer["ground_truth"] for name, accepted in call.items())
    return BfclTask(question["id"], kind, message["content"], tuple(question["function"]), expected)


def _reader(source: Path) -> Callable[[str], Iterator[Any]]:
    if source.is_dir():
        return lambda name: map(json.loads, (source / "bfcl_eval" / "data" / name).read_text().splitlines())
    archive = zipfile.ZipFile(source)
    return lambda name: map(json.loads, archive.read(f"bfcl_eval/data/{name}").decode().splitlines())
