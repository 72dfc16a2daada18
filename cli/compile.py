"""`maskwright compile`: a constraint compiled for a model's tokenizer and kept in a file, for `generate --compiled`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..constraint_choice import choose
from ..constraints import Compiler, warm_up
from ..engine.models.spec import read_spec
from ..engine.models.tokenizer import load_tokenizer
from ..errors import UsageError
from ..model_folder import EMBEDDED, find_model
from .model_options import ChoiceOption, GrammarOption, ModelOption, RegexOption, SchemaOption, constraint_options
from .show import notices, show_remarks


def compile_constraint(
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    schema: SchemaOption = None,
    regex: RegexOption = None,
    grammar: GrammarOption = None,
    choice: ChoiceOption = None,
    model: ModelOption = EMBEDDED,
) -> None:
    """Compile a constraint for a model's tokenizer and save it.

    The file fits this tokenizer and this version of maskwright; anything else refuses it by name.
    """
    source = choose(constraint_options(schema, regex, grammar, choice)).source
    if source is None:
        raise UsageError("there is nothing to compile: give --schema, --regex, --grammar or --choice")
    with notices.status("") as status:
        warm_up(report=status.update)
        status.update("reading the tokenizer")
        folder = find_model(model)
        compiler = Compiler(load_tokenizer(folder, read_spec(folder)).vocabulary)
        status.update("compiling")
        constraint = compiler.compile(source)
        constraint.mask(constraint.start())
    try:
        constraint.save(file)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}") from None
    show_remarks([constraint])
    notices.print(f"{file}: {file.stat().st_size / 1e3:,.0f} KB", markup=False)


def command() -> Any:
    app = typer.Typer(add_completion=False)
    app.command()(compile_constraint)
    return typer.main.get_command(app)
