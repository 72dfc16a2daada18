"""XGrammar's `style` of a JSON schema: the members of an object, each written by itself as models write arguments.

Source: `xgrammar/structural_tag.py` (0.2), `JSONSchemaFormat.style`. A string is written bare, up to the first end mark, all else
as JSON. White space may stand before and behind every parameter, and around a JSON value.
"""

from __future__ import annotations

from ..errors import UnsupportedKeyword
from ..json_schema import JsonSchema
from ..regex import Regex
from ..source import Limits
from .arguments import Argument, Parameter, parameters_of
from .tree import AnyOf, Joined, Part, Sequence, Tag, Text

_STYLES = {  # {string}: "true" before a bare string, "false" before JSON
    "qwen_xml": "<parameter={key}>{value}</parameter>",
    "minimax_xml": '<parameter name="{key}">{value}</parameter>',
    "glm_xml": "<arg_key>{key}</arg_key><arg_value>{value}</arg_value>",
    "deepseek_xml": '<\uff5cDSML\uff5cparameter name="{key}" string="{string}">{value}</\uff5cDSML\uff5cparameter>',
    "deepseek_v4_1_xml": '<\uff5cDSML\uff5c parameter name="{key}" string="{string}">{value}</\uff5cDSML\uff5c parameter>',
}


def xml_parameters(schema: JsonSchema, style: str, space: str, path: str) -> Part:
    """The members of an object in a style. `space`: white space as a pattern.

    Raises `UnsupportedKeyword` for a style that is not known, and for what members have to satisfy together.
    """
    template = _STYLES.get(style)
    if template is None:
        known = ", ".join(sorted(_STYLES))
        raise UnsupportedKeyword(f"{style!r} is not a style that is enforced", path=path, keyword="style", instead=known)
    gap = Regex(space, dialect="ecma")
    parameters = parameters_of(schema, Limits())
    parts = [(Sequence((gap, _parameter(schema, each, template, gap))), each.is_required) for each in parameters]
    return Sequence((Joined(parts, ""), gap))


def _parameter(schema: JsonSchema, parameter: Parameter, template: str, gap: Regex) -> Part:
    if "{string}" not in template:
        return _written(schema, parameter, template, parameter.notation, gap)
    notations = ("bare", "json") if parameter.notation == "either" else (parameter.notation,)
    options = [
        _written(schema, parameter, template.replace("{string}", "true" if one == "bare" else "false"), one, gap)
        for one in notations
    ]
    return AnyOf(options) if len(options) > 1 else options[0]


def _written(schema: JsonSchema, parameter: Parameter, template: str, notation: str, gap: Regex) -> Part:
    begin, _, end = template.replace("{key}", parameter.name).partition("{value}")
    if notation == "bare" and parameter.is_free:
        return Tag(begin, Text(), end)
    value = Argument(schema, parameter.name, notation, end, others_only=parameter.notation == "either" and notation == "json")
    return Tag(begin, Sequence((gap, value, gap)) if notation == "json" else value, end)
