"""What can be extended: the pages of docs/extending.md run, plugins are loaded in every way, and what is wrong is told by name."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from maskwright import LLM, ConfigError, RequestError, SamplingParams, SessionError, UsageError, extending, plugins
from maskwright.cli import run
from maskwright.engine.drafts.drafter import Drafter
from maskwright.engine.scheduling.policy import Arrival, rank_of
from maskwright.extending import (
    ATTENTION_METHODS,
    DRAFTERS,
    GRAMMAR_LANGUAGES,
    KV_LAYOUTS,
    LOGITS_STAGES,
    MODEL_FAMILIES,
    POLICIES,
    STOPPING,
    TOOL_STYLES,
    Registry,
    StoppingCriterion,
    ToolStyle,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending.md"
SECTIONS = dict(re.findall(r"^## (.+?)\n(.+?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))
REGISTRIES: dict[str, Registry[Any]] = {name: value for name, value in vars(extending).items() if isinstance(value, Registry)}


@pytest.fixture(autouse=True)
def forgets(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Nothing that a test registers or loads is there in the next one."""
    before = {name: set(registry) for name, registry in REGISTRIES.items()}
    monkeypatch.setattr(plugins, "_loaded", {})
    yield
    for name, registry in REGISTRIES.items():
        for added in set(registry) - before[name]:
            registry.unregister(added)


def test_every_registry_has_a_page() -> None:
    assert set(re.findall(r"\| `([A-Z_]+)` \|", PAGE.read_text(encoding="utf-8"))) == set(REGISTRIES)
    assert len(SECTIONS) == len(REGISTRIES)


@pytest.mark.parametrize("section", SECTIONS)
def test_the_pages_run(section: str) -> None:
    (block,) = re.findall(r"```python\n(.+?)```", SECTIONS[section], re.DOTALL)
    exec(compile(block, f"{PAGE.name}: {section}", "exec"), {"__name__": "__main__"})


# ---- registries


@pytest.mark.parametrize("name", REGISTRIES)
def test_a_registry_keeps_its_names(name: str) -> None:
    registry = REGISTRIES[name]
    built_in = list(registry)
    for taken in built_in[:1]:
        with pytest.raises(UsageError, match=f'there is a {registry.kind} "{taken}" already'):
            registry.register(taken, lambda: None)
        with pytest.raises(UsageError, match="ships with the package"):
            registry.unregister(taken)
        with pytest.raises(UsageError, match=f'unknown {registry.kind} "{taken}x"; did you mean .*{taken}'):
            registry.find(taken + "x")
    with pytest.raises(UsageError, match=rf'the {registry.kind} "mine" has to be {registry.needs}, not 7'):
        registry.register("mine", 7)
    for wrong in ("", " mine", 7):
        with pytest.raises(UsageError, match="registered under a name"):
            registry.register(wrong, print)  # type: ignore[arg-type]
    assert list(registry) == built_in


def test_registering_again_is_no_change() -> None:
    def policy(arrival: Arrival) -> tuple[float, ...]:
        return (0.0,)

    assert POLICIES.register("mine", policy) is policy and POLICIES.register("mine")(policy) is policy
    assert POLICIES.name_of(policy) == "mine" and not POLICIES.is_built_in("mine") and POLICIES.is_built_in("fcfs")
    POLICIES.unregister("mine")
    assert "mine" not in POLICIES


def test_options_tell_near_names(model_folder: Path) -> None:
    POLICIES.register("shortest", lambda arrival: (0.0,))
    for option, value, near in (("policy", "shortes", "shortest"), ("attention", "niave", "naive"), ("speculation", "lookups", "lookup"), ("kv_layout", "page", "paged")):
        with pytest.raises(ConfigError, match=f'{option} must be one of .*, got "{value}"; did you mean {near}'):
            LLM(model_folder, **{option: value})


# ---- what values do wrong


@pytest.mark.parametrize("rank", [(), (math.nan,), ("a",), 3, None])
def test_a_policy_that_gives_no_rank_is_named(rank: Any) -> None:
    with POLICIES.registered("odd", lambda arrival: rank), pytest.raises(RequestError, match='scheduling policy "odd"'):
        rank_of("odd", Arrival(0, 0))


def test_a_rank_ends_with_the_number_of_the_request() -> None:
    with POLICIES.registered("same", lambda arrival: (1,)):
        assert rank_of("same", Arrival(7, 0)) == (1.0, 7.0)
    assert rank_of("fcfs", Arrival(1, 9)) < rank_of("fcfs", Arrival(2, 3))


@pytest.mark.parametrize("length", [0, -3, 2.5, "16", True, None])
def test_a_layout_that_gives_no_length_is_named(length: Any, model_folder: Path) -> None:
    with KV_LAYOUTS.registered("odd", lambda request: length), pytest.raises(ConfigError, match='kv_layout "odd" gave blocks of'):
        LLM(model_folder, kv_layout="odd")


def test_a_drafter_that_is_none_is_named(model_folder: Path) -> None:
    with DRAFTERS.registered("odd", lambda parts: 7), pytest.raises(ConfigError, match='speculation="odd" made 7'):  # type: ignore[arg-type, return-value]
        LLM(model_folder, speculation="odd")
    with DRAFTERS.registered("odd", lambda parts: parts.nothing), pytest.raises(ConfigError, match='speculation="odd": AttributeError'):  # type: ignore[attr-defined]
        LLM(model_folder, speculation="odd")


def test_a_drafter_that_fails_costs_no_output(model_folder: Path, llm: LLM, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")

    class Wrong(Drafter):
        def propose(self, chunks):
            raise RuntimeError("no idea")

    sampling = SamplingParams(temperature=0.0, max_tokens=6)
    with DRAFTERS.registered("wrong", lambda parts: Wrong()):
        (output,) = LLM(model_folder, speculation="wrong").generate("a", sampling=sampling)
    assert output.token_ids == llm.generate("a", sampling=sampling)[0].token_ids


# ---- stopping criteria


class Countdown(StoppingCriterion):
    """Ends behind so many tokens."""

    def __init__(self, count: int = 3) -> None:
        self.count = count

    def begin(self, request):
        seen: list[int] = []

        def ends_after(token_id: int) -> bool:
            seen.append(token_id)
            return len(seen) == self.count

        return ends_after

    def parameters(self):
        return {"count": self.count}


def free(*criteria: object, **options: object) -> SamplingParams:
    return SamplingParams(temperature=0.0, max_tokens=8, ignore_eos=True, stopping_criteria=criteria, **options)  # type: ignore[arg-type]


def test_criteria_end_free_text(llm: LLM, model_folder: Path) -> None:
    plain, five, first, of_transformers = llm.generate(
        ["a"] * 4,
        sampling=[
            free(),
            free(Countdown(5)),
            free(Countdown(5), lambda token_ids: len(token_ids) == 2),
            free(lambda input_ids, scores: input_ids.shape[1] >= len(llm.tokenizer.encode("a")) + 4),
        ],
    )
    assert [len(output.token_ids) for output in (plain, five, first, of_transformers)] == [8, 5, 2, 4]
    assert five.token_ids == plain.token_ids[:5] and five.finish_reason == "stop"
    with STOPPING.registered("countdown", Countdown):
        everywhere = LLM(model_folder, stopping_criteria=["countdown"])
        assert [len(each.token_ids) for each in everywhere.generate(["a", "b"], sampling=[free(), free(Countdown(2))])] == [3, 2]
        assert len(everywhere.generate("a", regex="[a-z]{40}")[0].text) == 40  # a constraint alone decides
    for loop in ({"overlap": True}, {"automaton": "device", "steps_per_visit": 4}):
        (output,) = LLM(model_folder, **loop).generate("a", sampling=free(Countdown(5)))  # type: ignore[arg-type]
        assert output.token_ids == five.token_ids


def test_criteria_are_refused_beside_constraints_and_named_where_they_fail(llm: LLM, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")
    with pytest.raises(RequestError, match=r"stopping_criteria=.* contradicts a constraint"):
        llm.generate("a", regex="[a-z]+", sampling=SamplingParams(stopping_criteria=[Countdown()]))

    def broken(token_ids: list[int]) -> bool:
        raise KeyError(len(token_ids))

    bad, good = llm.generate(["a", "a"], sampling=[free(broken), free(Countdown())])
    assert bad.error == 'StoppingFailure: stopping criterion "broken": KeyError: 1' and len(good.token_ids) == 3
    for wrong, said in ((7, "has no method `begin`"), (Countdown, "is a class"), ("nope", "unknown stopping criterion")):
        with pytest.raises(UsageError, match=said):
            free(wrong)


def test_a_criterion_that_cannot_begin_refuses_its_request(llm: LLM, model_folder: Path) -> None:
    class Choosy(StoppingCriterion):
        def begin(self, request):
            raise LookupError("no such language")

    with pytest.raises(RequestError, match='"Choosy" refuses the request: LookupError: no such language'):
        llm.generate("a", sampling=free(Choosy()))
    everywhere = LLM(model_folder, stopping_criteria=[Countdown()])
    with pytest.raises(RequestError, match="stopping_criteria"):
        everywhere.beam_search("a", width=2)


def test_criteria_go_with_sessions(llm: LLM, tmp_path: Path) -> None:
    sampling = free(Countdown(6))
    expected = llm.generate("a", sampling=sampling)[0]
    session = llm.open("a", sampling=sampling)
    next(session)
    with pytest.raises(SessionError, match="Countdown is not registered"):
        session.save(tmp_path / "session")
    with STOPPING.registered("countdown", Countdown):
        session.save(tmp_path / "session")
        assert llm.resume(tmp_path / "session").result().token_ids == expected.token_ids
    with pytest.raises(SessionError, match='the stopping criterion "countdown", which is not registered here'):
        llm.resume(tmp_path / "session")
    session.close()


def test_a_name_stands_for_what_is_made_without_arguments() -> None:
    def needs(count: int) -> Countdown:
        return Countdown(count)

    with STOPPING.registered("needs", needs), pytest.raises(UsageError, match=r'stopping_criteria: "needs" cannot be made by its name alone: TypeError'):
        free("needs")
    with LOGITS_STAGES.registered("needs", needs), pytest.raises(UsageError, match=r'logits_processors: "needs" cannot be made by its name alone'):
        SamplingParams(logits_processors=["needs"])


# ---- plugins

PLUGIN = """
from maskwright.extending import LOGITS_STAGES, POLICIES, TOOL_STYLES, ToolStyle, LogitsStage


class Favour(LogitsStage):
    def setup(self, request):
        return request.spellings.index(b"q")

    def apply(self, logits, context):
        logits[:, context.states[0]] += 1000
        return logits


def register():
    LOGITS_STAGES.register("favour", Favour)
    POLICIES.register("last", lambda arrival: (-arrival.number,))
    TOOL_STYLES.register("angle", ToolStyle(call="<do>{name}|{arguments}</do>"))
"""


@pytest.fixture
def plugin_file(tmp_path: Path) -> Path:
    path = tmp_path / "ideas.py"
    path.write_text(PLUGIN)
    return path


def test_plugins_are_loaded_once_by_name_or_as_functions(model_folder: Path, plugin_file: Path) -> None:
    calls = []
    name = f"{plugin_file}:register"
    llm = LLM(model_folder, plugins=[name, lambda: calls.append(1)], logits_processors=["favour"], policy="last")
    assert llm.generate("a", regex="[a-z]{3}")[0].text == "qqq"
    plugins.load_plugins([name])
    assert calls == [1] and plugins.loaded_names() == (name,)


@pytest.mark.parametrize("place", ["before the command", "after it"])
def test_the_command_line_loads_plugins_first(place: str, plugin_file: Path, model_folder: Path, capsys: Any) -> None:
    plugin = ["--plugin", f"{plugin_file}:register"]
    asked = ["generate", "-m", str(model_folder), "--regex", "[a-z]{3}", "--logits-processor", "favour", "--policy", "last", "a"]
    arguments = [*plugin, *asked] if place == "before the command" else [asked[0], *plugin, *asked[1:]]
    assert run(arguments) == 0
    assert capsys.readouterr().out.strip() == "qqq"


def test_the_command_line_names_what_is_not_there(model_folder: Path, plugin_file: Path, capsys: Any) -> None:
    for arguments, said in (
        (["--logits-processor", "favor"], 'unknown logits processor "favor"'),
        (["--stopping-criterion", "never"], 'unknown stopping criterion "never"'),
        (["--plugin", "/nowhere/ideas.py:register"], "there is no such file"),
        (["--plugin", "no_such_module_at_all:register"], 'there is no module "no_such_module_at_all"'),
        (["--plugin", f"{plugin_file}:registers"], 'has no "registers"'),
    ):
        assert run(["generate", *arguments, "-m", str(model_folder), "a"]) == 2
        assert said in " ".join(capsys.readouterr().err.split())


def test_a_plugin_that_raises_is_named() -> None:
    def broken() -> None:
        raise ZeroDivisionError("oh")

    with pytest.raises(UsageError, match=r"broken.* raised ZeroDivisionError: oh"):
        plugins.load_plugins([broken])
    for wrong, said in ((7, "neither a function nor a name"), ("math:pi", "is no function")):
        with pytest.raises(UsageError, match=said):
            plugins.load_plugins([wrong])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="a list of functions and names"):
        plugins.load_plugins("ideas:register")


def test_installed_packages_bring_plugins(tmp_path: Path, plugin_file: Path) -> None:
    """In a process that finds a package beside the others, with and without being asked for it."""
    info = tmp_path / "ideas-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ideas\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[maskwright.plugins]\nideas = ideas:register\n")
    code = f"import sys; sys.path.append({str(tmp_path)!r})\nfrom maskwright import plugins\nfrom maskwright.extending import POLICIES\n"
    code += "plugins.load_installed(); print('last' in POLICIES)"
    for variables, said in (({}, "True"), ({"MASKWRIGHT_PLUGINS": ""}, "False"), ({"MASKWRIGHT_PLUGINS": "ideas"}, "True"), ({"MASKWRIGHT_PLUGINS": "idea"}, 'has a plugin "idea"; there are ideas')):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **variables})
        assert said in done.stdout + done.stderr


def test_everything_registered_reaches_other_processes(plugin_file: Path) -> None:
    """A name of a style means nothing in a process that compiles, so the style itself goes there."""
    from maskwright.constraints import Tools

    plugins.load_plugins([f"{plugin_file}:register"])
    tools = Tools([{"name": "f", "parameters": {"type": "object"}}], style="angle")
    assert isinstance(tools.style, ToolStyle) and tools.style is TOOL_STYLES["angle"]
    assert Tools([{"name": "f", "parameters": {"type": "object"}}], style="qwen").style == "qwen"


def test_names_of_all_kinds_are_those_of_the_registries() -> None:
    kinds = [registry.kind for registry in (ATTENTION_METHODS, GRAMMAR_LANGUAGES, LOGITS_STAGES, MODEL_FAMILIES, TOOL_STYLES)]
    assert len(set(kinds)) == len(kinds)
