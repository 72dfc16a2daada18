"""The options that every command shares: which model, which constraint."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ..constraint_choice import ConstraintOptions
from ..constraints import warm_up
from ..engine import EngineConfig, EngineFeatures
from ..errors import UsageError
from ..llm import LLM
from ..model_folder import EMBEDDED
from ..plugins import load_installed, load_plugins
from ..sampling import SamplingParams
from ..sampling.logits_stages import stages_of
from ..sampling.stopping import criteria_of
from .inputs import read_grammar, read_schema
from .options import given_options, option_parameters
from .show import waiting

CONSTRAINT, MODEL, SAMPLING, OUTPUT = "Constraint (at most one)", "Model", "Sampling", "Output"  # panels of --help
SPEED, ENGINE = "Speed (the output is the same)", "Engine"
OWN = "One's own"
NAMED = ("model", "device", "dtype")  # fields of EngineConfig that have an option of their own

def load_plugin_option(names: list[str] | None) -> list[str] | None:
    """Load the plugins that the command line names, before its other options are looked at."""
    load_installed()
    load_plugins(names or (), "--plugin")
    return names


SchemaOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.json|{...}|MODULE:CLASS", help="A JSON Schema, in a file or as it is, or a type to fill.",
        rich_help_panel=CONSTRAINT,
    ),
]
RegexOption = Annotated[str | None, typer.Option(help="A regular expression for the whole output.", rich_help_panel=CONSTRAINT)]
GrammarOption = Annotated[
    str | None, typer.Option(metavar="FILE|NAME", help="A grammar in GBNF, or a shipped one.", rich_help_panel=CONSTRAINT)
]
ChoiceOption = Annotated[list[str] | None, typer.Option(help="One of these; repeat the option.", rich_help_panel=CONSTRAINT)]
ModelOption = Annotated[
    str,
    typer.Option("--model", "-m", help="A model folder, a GGUF file, or a name in the Hugging Face cache.", rich_help_panel=MODEL),
]
RevisionOption = Annotated[
    str | None, typer.Option(help="Of a repository: a branch, tag or commit.", rich_help_panel=MODEL)
]
DownloadOption = Annotated[
    bool, typer.Option("--download", help="Fetch a repository that is not in the cache.", rich_help_panel=MODEL)
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, ...", rich_help_panel=MODEL)]
AdapterOption = Annotated[
    Path | None,
    typer.Option("--adapter", help="A LoRA adapter to run with: a folder of peft, or a GGUF file.", rich_help_panel=MODEL),
]
PluginOption = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="MODULE:FUNCTION|FILE.py",
        help="Registers things of one's own (docs/extending.md); may be repeated.",
        callback=load_plugin_option,
        is_eager=True,
        expose_value=False,
        rich_help_panel=OWN,
    ),
]
ProfileOption = Annotated[
    Path | None,
    typer.Option(
        "--profile", metavar="FOLDER", help="Trace it all, for ui.perfetto.dev; slower.", rich_help_panel=ENGINE
    ),
]
LogitsProcessorOption = Annotated[
    list[str] | None,
    typer.Option("--logits-processor", metavar="NAME", help="A registered stage, in every request.", rich_help_panel=OWN),
]
StoppingOption = Annotated[
    list[str] | None,
    typer.Option("--stopping-criterion", metavar="NAME", help="A registered criterion, for free text.", rich_help_panel=OWN),
]
GreedyOption = Annotated[
    bool, typer.Option("--greedy", help="The most probable token each time: --temperature 0.", rich_help_panel=SAMPLING)
]
DtypeOption = Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.", rich_help_panel=MODEL)]


def constraint_options(
    schema: str | None, regex: str | None, grammar: str | None, choice: list[str] | None
) -> ConstraintOptions:
    """What `LLM.generate` takes, read from what the command line names."""
    read = None if grammar is None else read_grammar(grammar)
    given: dict[str, Any] = {
        "schema": None if schema is None else read_schema(schema),
        "regex": regex,
        "grammar" if isinstance(read, str) else "constraint": read,
        "choice": choice or None,
    }
    return ConstraintOptions(**{name: value for name, value in given.items() if value is not None})  # type: ignore[typeddict-item]


def sampling_options(values: Mapping[str, Any], greedy: bool) -> dict[str, Any]:
    """The sampling options that were given, checked."""
    asked = given_options(SamplingParams, values)
    if greedy and asked.get("temperature"):
        raise UsageError(f"--greedy is --temperature 0; it contradicts --temperature {asked['temperature']}")
    asked |= {"temperature": 0.0} if greedy else {}
    SamplingParams(**asked)
    return asked


def engine_parameters() -> list[inspect.Parameter]:
    """One option for each field of EngineConfig and EngineFeatures, apart from `NAMED`."""
    config = option_parameters(EngineConfig, ENGINE, shows_defaults=True)
    panels = dict.fromkeys(EngineFeatures.CHANGES_TOKENS, ENGINE)
    features = option_parameters(EngineFeatures, SPEED, panels, shows_defaults=True)
    return [*(parameter for parameter in config if parameter.name not in NAMED), *features, *own_parameters()]


def own_parameters() -> list[inspect.Parameter]:
    """Options for what plugins bring; `--plugin` is carried out before the others are looked at."""
    annotations = {"logits_processor": LogitsProcessorOption, "stopping_criterion": StoppingOption, "plugin": PluginOption}
    kind = inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter(name, kind, default=None, annotation=annotation) for name, annotation in annotations.items()]


def engine_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """The engine options that were given, checked before a model is loaded."""
    features = given_options(EngineFeatures, values)
    config = {name: value for name, value in given_options(EngineConfig, values).items() if name not in NAMED}
    EngineFeatures(**features), EngineConfig(model=Path(), **config)
    given = {"logits_processors": values.get("logits_processor"), "stopping_criteria": values.get("stopping_criterion")}
    own = {name: tuple(names) for name, names in given.items() if names}
    stages_of("logits_processors", own.get("logits_processors", ()))  # names that there are not are told
    criteria_of("stopping_criteria", own.get("stopping_criteria", ()))
    return features | config | own


def named_adapter(adapter: Path | None) -> tuple[str | None, dict[str, Path]]:
    """(the name of the adapter that was given, all adapters by name)"""
    return (None, {}) if adapter is None else ("adapter", {"adapter": adapter})


def load_model(model: str, device: str, dtype: str, *, says_all: bool = False, **features: Any) -> LLM:
    """The model, with a line about what is going on while it loads. says_all: also about what does not take long."""
    with waiting(says_all) as say:
        warm_up(report=say)
        say(f"loading {'the embedded model' if model == EMBEDDED else model} ...")
        return LLM(model, device=device, dtype=dtype, **features)
