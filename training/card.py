"""Write the model card from measured results.

    python training/card.py --results benchmarks/results/embedded-model.json --model api/embedded --training "5,000 steps …"
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

SETS = {
    "held_out": "new phrasings, new values",
    "held_out_values": "known phrasings, new values",
    "handwritten": "written by hand, a guide to the work",
    "unseen": "written by hand afterwards",
    "unseen_later": "written by hand later, in more shapes",
}
KINDS = {"fill": "fields of schemas", "call": "tool and arguments", "choice": "choices", "regex": "patterns", "grammar": "grammars"}


def share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def totals_table(results: dict[str, Any]) -> str:
    """Fields filled exactly, free and constrained, for each set of texts."""
    rows = ["| texts | fields | free | constrained |", "| --- | ---: | ---: | ---: |"]
    for name, title in SETS.items():
        free, constrained = results[name]["free"], results[name]["constrained"]
        rows.append(f"| {title} | {constrained['fields']:,} | {share(free['fields_exact'])} | **{share(constrained['fields_exact'])}** |")
    return "\n".join(rows)


def kinds_table(results: dict[str, Any]) -> str:
    """The same by kind of task, on new phrasings and values."""
    free, constrained = (results["held_out"][mode]["fields_exact_by_kind"] for mode in ("free", "constrained"))
    whole = results["held_out"]["constrained"]["answers_exact_by_kind"]
    rows = ["| new phrasings, new values | free | constrained | whole answers, constrained |", "| --- | ---: | ---: | ---: |"]
    for kind, title in KINDS.items():
        if kind in constrained:
            rows.append(f"| {title} | {share(free.get(kind))} | {share(constrained[kind])} | {share(whole.get(kind))} |")
    return "\n".join(rows)


def card(template: str, results: dict[str, Any], size: int, training: str, results_file: str) -> str:
    filled = {
        "table": totals_table(results),
        "detail": kinds_table(results),
        "size": f"{size / 1e6:.1f} MB",
        "training": training,
        "results": results_file,
        "num_hand": str(sum(sum(results[name]["constrained"]["answers_by_kind"].values()) for name in ("unseen", "unseen_later"))),
        **{name: str(results[name]) for name in ("date", "device", "torch", "transformers", "command")},
    }
    for name, text in filled.items():
        template = template.replace("{" + name + "}", text)
    return template


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--training", required=True, help="one paragraph on the run")
    arguments = parser.parse_args()
    template = (Path(__file__).parent / "MODEL_CARD.template.md").read_text()
    size = sum(file.stat().st_size for file in arguments.model.iterdir() if file.suffix in (".safetensors", ".json", ".jinja"))
    text = card(template, json.loads(arguments.results.read_text()), size, arguments.training, arguments.results.name)
    (arguments.model / "MODEL_CARD.md").write_text(text)


if __name__ == "__main__":
    main()
