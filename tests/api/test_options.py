"""Command-line options follow the fields of a dataclass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import pytest

from maskwright import SamplingParams, UsageError
from maskwright.cli.options import given_options, option_parameters
from maskwright.field_comments import field_comments


@dataclass
class Options:
    heat: float = 1.0  # warmth; 0 = off
    words: tuple[str, ...] = ()  # may come often
    weights: Mapping[int, float] = field(default_factory=dict)  # id -> weight
    seed: int | None = None  # None = a fresh one
    loud: bool = False


def test_every_field_becomes_an_option_with_its_comment() -> None:
    parameters = option_parameters(Options, "Panel")
    assert [parameter.name for parameter in parameters] == ["heat", "words", "weights", "seed", "loud"]
    assert field_comments(Options) == {
        "heat": "warmth; 0 = off",
        "words": "may come often",
        "weights": "id -> weight",
        "seed": "None = a fresh one",
    }


def test_every_sampling_option_has_a_comment_or_a_telling_name() -> None:
    without = {option.name for option in fields(SamplingParams)} - set(field_comments(SamplingParams))
    assert without <= {"stop_token_ids"}


def test_only_what_was_given_is_passed_on() -> None:
    values = {"heat": 0.0, "words": ["a", "b"], "weights": ["3=0.5", "4=-1"], "seed": None, "loud": None, "other": 1}
    assert given_options(Options, values) == {"heat": 0.0, "words": ("a", "b"), "weights": {3: 0.5, 4: -1.0}}


@pytest.mark.parametrize("entry", ["3", "x=1", "3=x", ""])
def test_a_malformed_entry_is_named(entry: str) -> None:
    with pytest.raises(UsageError, match=f"--weights {entry}: expected int=value"):
        given_options(Options, {"weights": [entry]})


def test_a_bias_is_given_by_id_or_by_text() -> None:
    assert given_options(SamplingParams, {"logit_bias": ["17=-2.5", "yes=4", "2=1"]}) == {"logit_bias": {17: -2.5, "yes": 4.0, 2: 1.0}}
    assert given_options(SamplingParams, {"stages": ["top_p", "temperature"]}) == {"stages": ("top_p", "temperature")}
    with pytest.raises(UsageError, match="--logit-bias yes: expected int or str=value"):
        given_options(SamplingParams, {"logit_bias": ["yes"]})


def test_what_only_python_has_is_no_option() -> None:
    names = {parameter.name for parameter in option_parameters(SamplingParams, "Panel")}
    assert "bad_words_ids" not in names and {"bad_words", "dry_multiplier", "top_n_sigma", "mirostat"} <= names


def test_options_have_the_names_of_llama_cpps_commands_too() -> None:
    given = {
        "--temp": "temperature", "-n": "max_tokens", "--predict": "max_tokens", "--n-predict": "max_tokens", "--top-k": "top_k", "--top-p": "top_p",
        "--min-p": "min_p", "--top-nsigma": "top_n_sigma", "--typical": "typical_p", "--xtc-probability": "xtc_probability", "--seed": "seed",
        "--xtc-threshold": "xtc_threshold", "--repeat-last-n": "repeat_last_n", "--repeat-penalty": "repetition_penalty",
        "--presence-penalty": "presence_penalty", "--frequency-penalty": "frequency_penalty", "--dry-multiplier": "dry_multiplier",
        "--dry-base": "dry_base", "--dry-allowed-length": "dry_allowed_length", "--dry-penalty-last-n": "dry_penalty_last_n",
        "--dry-sequence-breaker": "dry_sequence_breakers", "--dynatemp-range": "dynatemp_range", "--dynatemp-exp": "dynatemp_exponent",
        "--mirostat": "mirostat", "--mirostat-lr": "mirostat_eta", "--mirostat-ent": "mirostat_tau", "--ignore-eos": "ignore_eos",
        "--logit-bias": "logit_bias",
    }  # fmt: skip
    options = {parameter.name: parameter.annotation.__metadata__[0].param_decls for parameter in option_parameters(SamplingParams, "Panel")}
    known = {flag: name for name, flags in options.items() for flag in flags or ["--" + name.replace("_", "-")]}
    assert {flag: known.get(flag) for flag in given} == given
