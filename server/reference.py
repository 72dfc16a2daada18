"""GET /docs: the OpenAPI document as one page of HTML, without scripts and without anything from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

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
        '<link rel="stylesheet" href="playground/reference.css"></head>\n<body class="reference"><header class="top">'
        f'<h1>{title}</h1><nav aria-label="This server"><a class="quiet" href="openapi.json">OpenAPI document</a>'
        f'<a class="quiet" href=".">Playground</a></nav></header>\n<main><p>{escape(info.get("description", ""))}</p>'
        f'<nav aria-label="Endpoints"><ul class="index">{index}</ul></nav>\n'
        + "\n".join(_operation(*each) for each in operations)
        + "\n<h2>Forms</h2>\n"
        + "\n".join(_form(name, form) for name, form in sorted(forms.items()))
        + "\n</main></body></html>\n"
    )


def _operation(method: str, path: str, told: Form) -> str:
    lines = [f'<section class="panel" id="{_anchor(method, path)}"><h2>{_entry(method, path)}</h2>']
    lines.append(f"<p>{escape(told.get('summary', ''))}. {escape(told.get('description', ''))}</p>")
    parameters = {each["name"]: each["schema"] for each in told.get("parameters", ())}
    if parameters:
        lines.append(_table(parameters, [each["name"] for each in told["parameters"] if each.get("required")]))
    for _, content in told.get("requestBody", {}).get("content", {}).items():
        lines.append(f"<p>Body: {_type(content['schema'])}</p>")
    answers = "".join(_answer(status, answer) for status, answer in told.get("responses", {}).items())
    return "".join([*lines, f"<dl>{answers}</dl></section>"])


def _answer(status: str, answer: Form) -> str:
    named = {_type(content["schema"]) for content in answer.get("content", {}).values() if "$ref" in content.get("schema", {})}
    return f"<dt>{escape(status)}</dt><dd>{escape(answer.get('description', ''))} {' '.join(sorted(named))}</dd>"


def _form(name: str, form: Form) -> str:
    description = f"<p>{escape(form.get('description', ''))}</p>" if form.get("description") else ""
    members = _table(form["properties"], form.get("required", ())) if form.get("properties") else f"<p>{_type(form)}</p>"
    return f'<section class="panel" id="{escape(name)}"><h3>{escape(name)}</h3>{description}{members}</section>'


def _table(members: Form, required: Any) -> str:
    rows = []
    for name, form in members.items():
        mark = ' <span class="required">required</span>' if name in required else ""
        told = escape(form.get("description", ""))
        rows.append(f"<tr><th scope=row><code>{escape(name)}</code>{mark}</th><td>{_type(form)}</td><td>{told}</td></tr>")
    return f'<div class="wide" tabindex="0"><table><tbody>{"".join(rows)}</tbody></table></div>'


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
        limits = [f"{sign} {form[word]}" for word, sign in LIMITS.items() if word in form]
        yield " ".join([kind, *limits])


LIMITS = {"minimum": "≥", "exclusiveMinimum": "&gt;", "maximum": "≤", "exclusiveMaximum": "&lt;"}


def _entry(method: str, path: str) -> str:
    return f'<span class="method">{method.upper()}</span> <code>{escape(path)}</code>'


def _anchor(method: str, path: str) -> str:
    return escape(f"{method}{path}")
