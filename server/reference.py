"""GET /docs: the OpenAPI document as one page of HTML, with nothing from elsewhere. A script of it searches."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from .body import STATUS
from .playground import HEADERS

router = APIRouter(include_in_schema=False)
Form = Mapping[str, Any]
FORMS = "#/components/schemas/"


@router.get("/docs", summary="This reference")
async def show(request: Request) -> Response:
    return Response(page(request.app.openapi()), media_type="text/html", headers=HEADERS)


def page(document: Form) -> str:
    """A page for an OpenAPI document: its operations, and the forms that they name."""
    operations = [(method, path, told) for path, item in document["paths"].items() for method, told in item.items()]
    forms = document.get("components", {}).get("schemas", {})
    index = "".join(f'<li><a href="#{_anchor(method, path)}">{_entry(method, path)}</a></li>' for method, path, _ in operations)
    info = document["info"]
    title = f"{escape(info['title'])} {escape(info['version'])}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{title}</title>'
        '<link rel="icon" href="playground/icon.svg" type="image/svg+xml"><link rel="stylesheet" href="playground/style.css">'
        '<link rel="stylesheet" href="playground/reference.css">'
        '<script type="module" src="playground/reference.mjs"></script></head>\n'
        f'<body class="reference"><header class="top"><h1>{title}</h1>'
        '<search id="search-field" hidden><label class="field">Search routes and parameters '
        '<input type="search" id="search"></label>'
        '<p class="hint" id="found" role="status"></p></search>'
        '<nav aria-label="This server"><a class="quiet" href="openapi.json">OpenAPI document</a>'
        '<a class="quiet" href=".">Playground</a></nav></header>\n'
        f'<nav class="index" aria-label="Endpoints"><ul>{index}</ul><a href="#forms">Forms</a></nav>\n'
        f"<main>{_text(info.get('description', ''))}\n"
        + "\n".join(_operation(*each) for each in operations)
        + '\n<h2 id="forms">Forms</h2>\n'
        + "\n".join(_form(name, form) for name, form in sorted(forms.items()))
        + "\n</main></body></html>\n"
    )


def _operation(method: str, path: str, told: Form) -> str:
    lines = [f'<section class="panel route" id="{_anchor(method, path)}"><h2>{_entry(method, path)}</h2>']
    lines.append(_text(f"{told.get('summary', '').rstrip('.')}. {told.get('description', '')}"))
    parameters = {each["name"]: each["schema"] for each in told.get("parameters", ())}
    if parameters:
        lines.append(_table(parameters, [each["name"] for each in told["parameters"] if each.get("required")]))
    for _, content in told.get("requestBody", {}).get("content", {}).items():
        lines.append(f"<p>Body: {_type(content['schema'])}</p>")
    answers = "".join(_answer(status, answer) for status, answer in told.get("responses", {}).items())
    return "".join([*lines, f"<dl>{answers}</dl></section>"])


def _answer(status: str, answer: Form) -> str:
    named = {_type(content["schema"]) for content in answer.get("content", {}).values() if "$ref" in content.get("schema", {})}
    return f"<dt>{escape(status)}</dt><dd>{_code(answer.get('description', ''))} {' '.join(sorted(named))}</dd>"


def _form(name: str, form: Form) -> str:
    members = _table(form["properties"], form.get("required", ())) if form.get("properties") else f"<p>{_type(form)}</p>"
    told = _text(form.get("description", ""))
    return f'<section class="panel form" id="{escape(name)}"><h3>{escape(name)}</h3>{told}{members}</section>'


def _table(members: Form, required: Any) -> str:
    """What a form consists of, what has to be given first. Columns in which nothing stands are left out."""

    def rank(name: str) -> tuple[bool, int]:
        return name not in required, STATUSES.index(members[name].get(STATUS, ""))

    rows = {name: _cells(members[name], is_required=name in required) for name in sorted(members, key=rank)}
    columns = [title for title in COLUMNS if any(cells[title] for cells in rows.values())]
    head = "".join(f'<th scope=col data-column="{title}">{title}</th>' for title in ("Name", *columns))
    lines = [
        f"<tr><th scope=row><code>{escape(name)}</code></th>"
        + "".join(f'<td data-column="{title}">{cells[title]}</td>' for title in columns)
        + "</tr>"
        for name, cells in rows.items()
    ]
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


STATUSES = ("", "honoured", "ignored", "refused")
COLUMNS = ("Type", "Default", "Status", "Meaning")


def _cells(form: Form, *, is_required: bool) -> dict[str, str]:
    """The cells of a row, by their columns."""
    status = form.get(STATUS, "")
    default = f"<code>{escape(_written(form['default']))}</code>" if "default" in form else ""
    return {
        "Type": "" if status == "refused" else _type(form),
        "Default": '<span class="required">required</span>' if is_required else default,
        "Status": f'<span class="status {status}">{status}</span>' if status else "",
        "Meaning": _code(form.get("description", "").removeprefix(f"{status.capitalize()}: ")),
    }


def _written(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value)


def _text(told: str) -> str:
    """Paragraphs of a description, in which `this` is code."""
    return "".join(f"<p>{_code(part)}</p>" for part in told.split("\n\n") if part.strip())


def _code(told: str) -> str:
    return re.sub(r"`+([^`]+)`+", r"<code>\1</code>", escape(told))


def _type(form: Form) -> str:
    """The type of a form in words, such as "list of string, or null"; named forms are links."""
    return ", or ".join(dict.fromkeys(_kinds(form))) or "anything"


def _kinds(form: Form) -> Iterator[str]:
    if "$ref" in form:
        name = escape(form["$ref"].removeprefix(FORMS))
        yield f'<a href="#{name}">{name}</a>'
    for option in (*form.get("anyOf", ()), *form.get("oneOf", ()), *form.get("allOf", ())):
        yield from _kinds(option)
    for value in form.get("enum", [form["const"]] if "const" in form else ()):
        yield f"<code>{escape(repr(value) if not isinstance(value, str) else value)}</code>"
    kind = form.get("type") if "enum" not in form and "const" not in form else None
    if kind == "array":
        yield f"list of {_type(form.get('items', {}))}"
    elif kind == "object" and form.get("properties"):
        yield "object with " + ", ".join(f"<code>{escape(name)}</code>" for name in form["properties"])
    elif kind is not None:
        limits = [f"{sign} {form[word]:g}" for word, sign in LIMITS.items() if word in form]
        yield " ".join([kind, *limits])


LIMITS = {"minimum": "≥", "exclusiveMinimum": "&gt;", "maximum": "≤", "exclusiveMaximum": "&lt;"}


def _entry(method: str, path: str) -> str:
    return f'<span class="method">{method.upper()}</span> <code>{escape(path)}</code>'


def _anchor(method: str, path: str) -> str:
    return escape(f"{method}{path}")
