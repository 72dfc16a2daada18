"""How much of each grammar language is enforced exactly: grammars and patterns with accepted and rejected strings.

    python benchmarks/grammar_coverage.py --cases FILE.jsonl [--kinds lark ebnf] [--jobs 2] [--list wrong refused]

A case is *right* when every string is judged as the case says (or, where it expects a refusal, when there is one), *refused* when
a typed error names what is not enforced, *wrong* otherwise. What only one other tool means by a text, against the language's
own definition, is left out: `EXCLUDED` names each group with its reason, and their number is printed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import lark
from acceptors import BYTES, EOS
from result_files import count, errors_as_messages, result_file, size, there
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from workers import Failure, run_all

from maskwright.constraints import (
    Compiler,
    ConstraintError,
    ConstraintLimit,
    Ebnf,
    Gbnf,
    GrammarSyntaxError,
    Lark,
    Regex,
    Source,
    UnsupportedKeyword,
    Vocabulary,
)

Case = dict[str, Any]
VERDICTS = ("right", "wrong", "refused", "timed out", "hung", "crashed")


@dataclass(frozen=True)
class Outcome:
    """What became of a case."""

    verdict: str
    reason: str = ""


@dataclass(frozen=True)
class Exclusion:
    """Cases that are another tool's own extension, or its own limit, and why."""

    name: str
    reason: str
    holds: Callable[[Case], bool]


def _expects(case: Case, verdict: str) -> bool:
    return bool(case["expect"] == verdict)


def _is_of_xgrammar_alone(case: Case) -> bool:
    return case["kind"] != "gbnf" and set(case["verified_by"]) <= {"xgrammar"}


def _is_built_by_lark(text: str) -> bool:
    """Whether lark takes a grammar and can begin to parse with it."""
    try:
        lark.Lark(text, parser="earley", lexer="dynamic")
    except Exception:  # its own errors, and those of two libraries of regular expressions
        return False
    return "%declare" not in text  # terminals without a text are for lexers written in Python


class _Bytes:
    """A tokenizer of bytes, as llguidance asks for one."""

    eos_token_id, bos_token_id, special_token_ids = EOS, None, (EOS,)
    tokens = (*BYTES, b"</s>")

    def __call__(self, text: bytes) -> list[int]:
        return list(text)


def _is_built_by_llguidance(text: str) -> bool:
    """The same for llguidance, where it is installed."""
    if importlib.util.find_spec("llguidance") is None:
        return False
    from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

    tokenizer = LLTokenizer(TokenizerWrapper(_Bytes()))
    matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_lark(text), log_level=0)
    return not matcher.is_error()


def _is_of_python(case: Case) -> bool:
    try:
        re.compile(case["grammar"])
    except re.error:
        return False
    return bool(case["match"] == "full")


def _folds_beyond_ascii(case: Case) -> bool:
    return bool(re.search(r"/[a-z]*i|\(\\?\?i\)", case["grammar"])) and not case["grammar"].isascii()


EXCLUDED = (
    Exclusion(
        "refused by tools that lack it", "lark itself builds the grammar: priorities, templates, lookarounds, flags",
        lambda case: case["kind"] == "lark" and _expects(case, "compile_error") and _is_built_by_lark(case["grammar"]),
    ),
    Exclusion(
        "refused by XGrammar alone", "flags, \\p, {,3}, substring_words and captures that llguidance or Python take",
        lambda case: _expects(case, "compile_error") and case["verified_by"] == ["xgrammar"]
        and case["kind"] in ("lark", "regex")
        and (_is_of_python(case) if case["kind"] == "regex" else _is_built_by_llguidance(case["grammar"])),
    ),
    Exclusion(
        "not verified by any program", 'XGrammar reads Regex("+a"), and refuses it when it compiles; "foobar" alone is GBNF',
        lambda case: not _expects(case, "match") and not case["verified_by"]
        and bool(re.search(r'"\+a"|\\\\u|\\\\k|"foobar"', case["grammar"])),
    ),
    Exclusion(
        "one token of all", "no program was seen to refuse <[*]> alone; llguidance 1.9.1 builds it",
        lambda case: case["kind"] == "lark" and _expects(case, "compile_error") and not case["verified_by"]
        and "<[*]>" in case["grammar"],
    ),
    Exclusion(
        "case folding of ASCII only", "in Lark, XGrammar compares other letters as they are; lark and llguidance fold them",
        lambda case: case["kind"] == "lark" and _is_of_xgrammar_alone(case) and _folds_beyond_ascii(case),
    ),
    Exclusion(
        "lookaheads skipped", "XGrammar's converter drops (?=...) from a pattern, so that it means something else",
        lambda case: _is_of_xgrammar_alone(case) and _expects(case, "match") and "(?=" in case["grammar"],
    ),
    Exclusion(
        "a lazy head that may end anywhere", "XGrammar reads it as a dispatch on tags, llguidance as the rule that is written",
        lambda case: _is_of_xgrammar_alone(case) and "[lazy]" in case["grammar"] and "" in case["accept"],
    ),
    Exclusion(
        "\\s without the vertical tab", "strings checked by RE2 alone, whose \\s is not that of ECMA-262 or Python",
        lambda case: case["verified_by"] == ["re2"] and "\\s" in case["grammar"] and any("\v" in text for text in case["reject"]),
    ),
    Exclusion(
        "'if' without 'then'", "llguidance does not have the keyword; it has no effect then",
        lambda case: _expects(case, "compile_error") and '"if"' in case["grammar"],
    ),
    Exclusion(
        "left recursion refused", "llama.cpp cannot parse such grammars",
        lambda case: case["kind"] == "gbnf" and _expects(case, "compile_error")
        and bool(re.search(r"(?m)^\s*(\w+) ::=(?:.*\|)?\s*\1\b|empty asdf", case["grammar"])),
    ),
    Exclusion(
        "more than 2,000 repetitions", "llama.cpp's limit; ours is a million, because copies are counted",
        lambda case: case["kind"] == "gbnf" and _expects(case, "compile_error")
        and bool(re.search(r"\{[2-9]\d{3,},|(?:\{0,99\}\)?){4}", case["grammar"])),
    ),
)  # fmt: skip


# -- judging ------------------------------------------------------------------------------------------------------------


def source_of(case: Case) -> Source:
    """The front end that a case is about."""
    text = case["grammar"]
    if case["kind"] == "regex":
        full = case["match"] == "full"
        return Regex(text, dialect="python" if full else "ecma", full=full)
    if case["kind"] == "lark":
        return Lark(text, start=case.get("root", "start"))
    return (Gbnf if case["kind"] == "gbnf" else Ebnf)(text, root=case.get("root", "root"))


def judge(compiler: Compiler, case: Case) -> Outcome:
    """Compile a case and ask for its strings. Whatever else is raised ends the process, and the case counts as crashed."""
    try:
        constraint = compiler.compile(source_of(case))
    except ConstraintError as error:
        if case["expect"] == "compile_error":
            return Outcome("right", type(error).__name__)
        if _describes_nothing(error) and not case["accept"] and case["expect"] == "match":
            return Outcome("right", "no text")
        return Outcome("refused" if _is_named(error) else "wrong", _cause(error))
    if case["expect"] == "compile_error":
        return Outcome("wrong", "a refusal was expected")
    for text in case["accept"]:
        if not constraint.accepts(text.encode()):
            return Outcome("wrong", f"rejected {text[:80]!r}")
    for text in case["reject"]:
        if constraint.accepts(text.encode()):
            return Outcome("wrong", f"accepted {text[:80]!r}")
    return Outcome("right")


def _describes_nothing(error: ConstraintError) -> bool:
    return "nothing satisfies" in error.reason


def _is_named(error: ConstraintError) -> bool:
    """Whether an error says what is not enforced, rather than that the text is malformed."""
    return isinstance(error, UnsupportedKeyword | ConstraintLimit) or not isinstance(error, GrammarSyntaxError)


def _cause(error: ConstraintError) -> str:
    name = error.keyword or getattr(error, "limit", "") or type(error).__name__
    return f"{name}: {error.reason}".split("\n")[0][:160]


# -- printing -----------------------------------------------------------------------------------------------------------


def print_table(console: Console, cases: Sequence[Case], outcomes: Sequence[Outcome], seconds: float) -> None:
    table = Table(title="grammar languages", caption=f"{seconds:.0f} s")
    for heading in ("", "cases", *VERDICTS, "%"):
        table.add_column(heading, justify="right" if heading else "left")
    kinds = list(dict.fromkeys(case["kind"] for case in cases))
    for kind in [*kinds, "all"]:
        counts = Counter(
            got.verdict for case, got in zip(cases, outcomes, strict=True) if kind in ("all", case["kind"])
        )
        total = sum(counts.values())
        table.add_row(
            kind, str(total), *(str(counts[name]) for name in VERDICTS), f"{100 * counts['right'] / max(total, 1):.1f}"
        )
    console.print(table)
    reasons = Counter(f"{case['kind']} {got.reason}" for case, got in zip(cases, outcomes, strict=True)
                      if got.verdict == "refused")  # fmt: skip
    for reason, times in reasons.most_common():
        console.print(escape(f"refused {times}: {reason}"), highlight=False, soft_wrap=True)


def print_excluded(console: Console, cases: Sequence[Case]) -> list[Case]:
    """The cases that are judged; says what is left out."""
    kept = []
    counts: Counter[str] = Counter()
    for case in cases:
        found = next((one for one in EXCLUDED if one.holds(case)), None)
        if found is None:
            kept.append(case)
        else:
            counts[found.name] += 1
    for one in EXCLUDED:
        if counts[one.name]:
            line = f"left out {counts[one.name]}: {one.name}: {one.reason}"
            console.print(escape(line), highlight=False, soft_wrap=True)
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--cases", type=there, required=True, help="JSON lines: kind, grammar, expect, accept, reject, ..."
    )
    parser.add_argument("--kinds", nargs="+", default=["gbnf", "ebnf", "lark", "regex"])
    parser.add_argument("--jobs", type=count, default=2, help="processes")
    parser.add_argument("--seconds", type=size, default=20.0, help="processor time for one case")
    parser.add_argument("--list", nargs="+", default=["wrong", "crashed"], choices=VERDICTS)
    parser.add_argument("--all", action="store_true", help="judge what is left out, too")
    parser.add_argument("--output", type=result_file, help="write the outcomes here as JSON")
    arguments = parser.parse_args()
    console = Console(width=130)
    numbered = [{**json.loads(line), "line": at} for at, line in enumerate(arguments.cases.read_text().splitlines())]
    cases = [case for case in numbered if case["kind"] in arguments.kinds]
    cases = cases if arguments.all else print_excluded(console, cases)
    compiler = Compiler(Vocabulary([*BYTES, None], eos_token_ids=[EOS]), cache_bytes=1 << 24)
    compiler.compile(Regex("a")).accepts(b"a")  # compiled loops are loaded before the processes are forked
    begun = time.perf_counter()
    outcomes = [Outcome("crashed")] * len(cases)
    for at, got in run_all(lambda case: judge(compiler, case), cases, arguments.jobs, arguments.seconds):
        outcomes[at] = Outcome(got.kind, got.reason) if isinstance(got, Failure) else got
    for case, got in zip(cases, outcomes, strict=True):
        if got.verdict in arguments.list:
            line = (
                f"{case['line']} {case['kind']} {case['expect']} {got.verdict}: {got.reason}: {case['grammar'][:160]!r}"
            )
            console.print(escape(line), highlight=False, soft_wrap=True)
    print_table(console, cases, outcomes, time.perf_counter() - begun)
    if arguments.output:
        found = [{"line": case["line"], **vars(got)} for case, got in zip(cases, outcomes, strict=True)]
        arguments.output.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    with errors_as_messages():
        main()
