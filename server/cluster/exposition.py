"""The metrics of several processes as one page in Prometheus' text format: each sample gets a label that says whose it is."""

from __future__ import annotations

from collections.abc import Mapping

HEADS = ("# HELP ", "# TYPE ")


def merged(texts: Mapping[str, str], label: str = "replica") -> str:
    """One page of several, by the value of the label. A family stands together, as the format wants it."""
    families: dict[str, tuple[list[str], list[str]]] = {}  # by name: its head, its samples
    for owner, text in texts.items():
        head, samples = families.setdefault("", ([], []))
        for line in text.split("\n"):
            if line.startswith(HEADS):
                head, samples = families.setdefault(line.split(" ", 3)[2], ([], []))
                if line not in head and len(head) < len(HEADS):
                    head.append(line)
            elif line and not line.startswith("#"):
                samples.append(_labelled(line, label, owner))
    return "".join(f"{line}\n" for head, samples in families.values() for line in (*head, *samples))


def _labelled(sample: str, label: str, value: str) -> str:
    written = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    name, brace, rest = sample.partition("{")
    if brace and " " not in name:
        comma = "" if rest.startswith("}") else ","
        return f'{name}{{{label}="{written}"{comma}{rest}'
    name, _, rest = sample.partition(" ")
    return f'{name}{{{label}="{written}"}} {rest}'
