"""What every client library is tried with: a check of each kind, told in a line each.

A script defines checks with `@check("typed output")` and ends with `run_checks()`. It runs in an environment of its library alone, so
nothing but the standard library and Pydantic is imported here.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

warnings.simplefilter("ignore")  # what libraries warn of in themselves
os.environ |= {"OPENAI_API_KEY": "none", "DO_NOT_TRACK": "1", "OTEL_SDK_DISABLED": "true", "LANGSMITH_TRACING": "false"}
os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "HAYSTACK_TELEMETRY_ENABLED": "False"}
os.environ |= {"AGNO_TELEMETRY": "false", "OPENAI_AGENTS_DISABLE_TRACING": "1"}

SERVER = os.environ["MASKWRIGHT_URL"]
URL = f"{SERVER}/v1"
os.environ["OPENAI_BASE_URL"] = URL
MODEL = "embedded"
TEXT = "Ada Lovelace, 36, lives in London."
QUESTION = "What is the weather in Paris?"
UNKNOWN = "no-such-model"  # of which a server says so, with status 404

_CHECKS: dict[str, Callable[[], Any]] = {}


class Person(BaseModel):
    name: str
    age: int


ADA = Person(name="Ada Lovelace", age=36)


class Weather:
    """A function that a model may call, and how often it was."""

    def __init__(self) -> None:
        self.cities: list[str] = []

    def get_weather(self, city: str) -> str:
        """The weather in a city.

        Args:
            city: Its name.
        """
        self.cities.append(city)
        return f"It is sunny in {city}."


def check(name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def add(function: Callable[[], Any]) -> Callable[[], Any]:
        _CHECKS[name] = function
        return function

    return add


def raises(function: Callable[[], Any], words: str = UNKNOWN) -> None:
    """The library raises an error that hands on the server's own words."""
    try:
        made = function()
        if inspect.isawaitable(made):
            asyncio.get_event_loop().run_until_complete(made)
    except Exception as error:
        told, cause = "", error
        while cause is not None:
            told += f"{type(cause).__name__}: {cause} {getattr(cause, 'body', '')}\n"
            cause = cause.__cause__ or cause.__context__
        assert words in told, told
        return
    raise AssertionError("no error was raised")


def run_checks() -> None:
    """Lines begin anew: some libraries print what they stream."""
    is_wrong = False
    for name, function in _CHECKS.items():
        try:
            made = function()
            if inspect.isawaitable(made):
                asyncio.run(made)  # type: ignore[arg-type]
        except Exception:
            is_wrong = True
            print(f"\nfailed\t{name}\t{' | '.join(traceback.format_exc().strip().splitlines()[-6:])[:1500]}", flush=True)
        else:
            print(f"\nok\t{name}\t", flush=True)
    sys.stdout.flush()
    os._exit(is_wrong)  # libraries leave threads behind that would wait
