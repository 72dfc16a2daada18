"""`maskwright grammar`: what is wrong with a grammar, whether it accepts what it should, what it looks like, why a text fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import grammars
from ..constraints import Compiler, warm_up
from ..constraints.lab.check import DEFAULT_STEPS, check
from ..constraints.lab.explain import explain_text, explain_token
from ..constraints.lab.junit import junit
from ..constraints.lab.language import byte_compiler
from ..constraints.lab.suite import SUITE_ENDINGS, read_suites, run_suite, suite_beside
from ..drawing.automaton_map import automaton_map
from ..drawing.page import html_page
from ..drawing.railroad import railroad
from ..errors import UsageError
from ..model_folder import EMBEDDED
from ..tokenizer_folder import FolderTokenizer, read_tokenizer
from . import grammar_show as show
from .inputs import grammar_file, read_text
from .show import notices

FAILED = 1

GrammarArgument = Annotated[str, typer.Argument(metavar="GRAMMAR", help="A file, or the name of a grammar that ships.")]
LanguageOption = Annotated[
    str | None, typer.Option(help="gbnf, ebnf, lark, regex or json-schema; else what the file's ending says.")
]
StartOption = Annotated[str | None, typer.Option(help="The rule to begin with; else root, or start in Lark.")]
TokenizerOption = Annotated[str, typer.Option(metavar="FOLDER", help="A folder with a tokenizer.json.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]


def command() -> Any:
    """The group of commands about grammars."""
    app = typer.Typer(add_completion=False, no_args_is_help=True)
    for name, function in (
        ("list", list_), ("check", check_), ("test", test), ("draw", draw), ("explain", explain),
    ):  # fmt: skip
        app.command(name)(function)

    @app.callback()
    def grammar() -> None:
        """Write grammars: check, test, draw and explain them."""

    return typer.main.get_command(app)


def list_(as_json: JsonOption = False) -> None:
    """Name the grammars that ship, and what each accepts."""
    found = {name: grammars.description(name) for name in grammars.names()}
    if as_json:
        print(json.dumps(found, indent=1, ensure_ascii=False))
    else:
        show.grammar_list(found)


def check_(
    files: Annotated[list[str], typer.Argument(metavar="GRAMMAR...", help="Files, or names of grammars that ship.")],
    tokenizer: TokenizerOption = EMBEDDED,
    language: LanguageOption = None,
    start: StartOption = None,
    steps: Annotated[int, typer.Option(min=0, help="How far ambiguity is searched; 0: not at all.")] = DEFAULT_STEPS,
    as_json: JsonOption = False,
) -> None:
    """Find rules that are never reached or have no text, ambiguity, what is costly, what the tokenizer cannot spell.

    Exit code 0: nothing but notes. 1: an error, also of syntax, or a warning. 2: a file cannot be read.
    """
    read = [grammar_file(name, "GRAMMAR", language, start) for name in files]
    tokens = read_tokenizer(tokenizer)
    _warm_up()
    compiler = Compiler(tokens.vocabulary)
    checks = [check(file, compiler, tokens.encode, steps) for file in read]
    if as_json:
        print(json.dumps([one.as_json() for one in checks], indent=1, ensure_ascii=False))
    else:
        for one in checks:
            show.check(one, tokens.name)
    if not all(one.is_clean for one in checks):
        raise typer.Exit(FAILED)


def test(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH...]", help="Suites, grammars with a suite beside them, folders, or names.")
    ] = None,
    grammar: Annotated[Path | None, typer.Option(help="The grammar, where it is not the one of the suite's name.")] = None,
    junit_file: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit's XML too.")] = None,
) -> None:
    """Check that grammars accept and reject the strings of their .test.yaml and .jsonl files.

    Exit code 0: all as they should. 1: some are not, or a grammar does not compile. 2: a file cannot be read.
    """
    suites = [suite for path in _suite_paths(paths or ["."]) for suite in read_suites(path, grammar)]
    _warm_up()
    runs = [(suite, run_suite(suite, byte_compiler())) for suite in suites]
    if junit_file is not None:
        _write(junit_file, junit(runs), "--junit")
    show.suites(runs)
    if not all(result.passed for _, results in runs for result in results):
        raise typer.Exit(FAILED)


def draw(
    file: GrammarArgument,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="An .svg or .html file; else standard output, SVG.")] = None,
    text: Annotated[
        str | None, typer.Option(help="Draw the token automaton that this text visits instead of the rules.")
    ] = None,
    tokenizer: TokenizerOption = EMBEDDED,
    language: LanguageOption = None,
    start: StartOption = None,
) -> None:
    """Draw the rules as railroad diagrams, or the states that a text visits with the tokens that lead from one to the next."""
    if output is not None and output.suffix not in (".svg", ".html"):
        raise UsageError(f"--output {output}: a name that ends in .svg or .html is needed")
    read = grammar_file(file, "GRAMMAR", language, start)
    _warm_up()
    if text is None:
        byte_compiler().compile(read.source)  # says what is wrong with it
        if read.outline is None:
            raise UsageError(f"GRAMMAR {file}: a schema has no rules to draw; give --text to draw its automaton")
        drawings = railroad(read.outline)
        title = f"Rules of {read.name}"
    else:
        tokens = read_tokenizer(tokenizer)
        constraint = Compiler(tokens.vocabulary).compile(read.source)
        drawings, title = automaton_map(constraint, tokens.encode(text), text), f"States of {read.name}"
    is_page = output is not None and output.suffix == ".html"
    page = html_page(title, drawings) if is_page else drawings.svg()
    if output is None:
        print(page)
    else:
        _write(output, page.encode(), "--output")


def explain(
    file: GrammarArgument,
    text: Annotated[str | None, typer.Argument(help="The text; or --text-file.")] = None,
    text_file: Annotated[Path | None, typer.Option(help="A file that holds the text.")] = None,
    token: Annotated[
        str | None, typer.Option(metavar="ID|TEXT", help="Say too why this token may not, or may, follow the text.")
    ] = None,
    tokenizer: TokenizerOption = EMBEDDED,
    language: LanguageOption = None,
    start: StartOption = None,
) -> None:
    """Tell at which byte a text fails, what was expected there, and why a token is masked.

    Exit code 0: the text is accepted; with --token: the token is allowed. 1: it is not. 2: the input cannot be read.
    """
    if (text is None) == (text_file is None):
        raise UsageError("give either a text or --text-file")
    written = read_text(text_file, "--text-file") if text_file is not None else text or ""
    read = grammar_file(file, "GRAMMAR", language, start)
    tokens = None if token is None else read_tokenizer(tokenizer)
    token_id = None if token is None or tokens is None else _token_id(token, tokens)
    _warm_up()
    constraint = (byte_compiler() if tokens is None else Compiler(tokens.vocabulary)).compile(read.source)
    found = explain_text(constraint, written.encode("utf-8", "surrogateescape"), read.outline)
    show.text_explanation(found)
    if token_id is None:
        is_fine = found.accepted
    elif found.fails_at is not None:
        is_fine = False
    else:
        verdict = explain_token(constraint, found.state, token_id)
        show.token_explanation(verdict)
        is_fine = verdict.token.allowed
    if not is_fine:
        raise typer.Exit(FAILED)


# -- inside ---------------------------------------------------------------------------------------------------------------


def _warm_up() -> None:
    with notices.status("") as status:
        warm_up(report=status.update)


def _suite_paths(names: list[str]) -> list[Path]:
    """The suites that paths and names stand for."""
    found: dict[Path, None] = {}
    for name in names:
        path = Path(name)
        if path.is_dir():
            inside = [file for file in sorted(path.rglob("*")) if file.name.endswith(SUITE_ENDINGS[:2]) and file.is_file()]
            if not inside:
                raise UsageError(f"PATH {name}: there is no {' or '.join(SUITE_ENDINGS[:2])} file in this folder")
            found.update(dict.fromkeys(inside))
        elif name.endswith(SUITE_ENDINGS):
            found[path] = None
        elif path.exists() or name in grammars.names():
            beside = suite_beside(path if path.exists() else Path(str(grammars.path(name))))
            if beside is None:
                raise UsageError(f"PATH {name}: there is no suite beside it, such as {path.stem}{SUITE_ENDINGS[0]}")
            found[beside] = None
        else:
            raise UsageError(f"PATH {name}: there is no such file or folder, nor a grammar of that name")
    return list(found)


def _token_id(token: str, tokens: FolderTokenizer) -> int:
    """A number is an id; anything else is the text of a token, or the name of a special one."""
    vocabulary = tokens.vocabulary
    if token.isdecimal() and len(token) < 10:
        if int(token) >= vocabulary.size:
            raise UsageError(f"--token {token}: the vocabulary has {vocabulary.size} tokens, numbered from 0")
        return int(token)
    if token in vocabulary.special_tokens:
        return vocabulary.special_tokens[token]
    data = token.encode("utf-8", "surrogateescape")
    if data not in vocabulary.tokens:
        raise UsageError(f"--token {token}: there is no token with this text in {tokens.name}")
    return vocabulary.tokens.index(data)


def _write(path: Path, data: bytes, option: str) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise UsageError(f"{option} {path}: {error.strerror or error}") from None


