"""How Numba is told of views (views.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numba.core import types
from numba.core.cgutils import int32_t, intp_t
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model


def lowered(name: str, words: Mapping[str, Any]) -> Any:
    """The function that `view` returns; words: a `Word` for each attribute."""

    class View(types.Type):
        def __init__(self) -> None:
            super().__init__(name=name)

    kind = View()

    @register_model(View)
    class Model(models.PrimitiveModel):
        def __init__(self, manager: Any, of: types.Type) -> None:
            super().__init__(manager, of, int32_t.as_pointer())

    @infer_getattr
    class Attributes(AttributeTemplate):
        key = View

        def generic_resolve(self, value: types.Type, attribute: str) -> types.Type | None:
            return types.int64 if attribute in words else None

    @lower_getattr_generic(View)
    def load_attribute(context: Any, builder: Any, of: types.Type, value: Any, attribute: str) -> Any:
        def load(index: int) -> Any:
            at = builder.gep(value, [intp_t(index)])
            word = builder.load(at)
            word.set_metadata("invariant.load", builder.module.add_metadata([]))
            return builder.sext(word, intp_t)

        word = words[attribute]
        found = load(word.index)
        if word.since is not None:
            found = builder.sub(found, load(word.since))
        if word.shift:
            found = builder.ashr(found, intp_t(word.shift))
        return builder.add(found, intp_t(word.plus)) if word.plus else found

    @intrinsic
    def view_of(typing_context: Any, address: types.Type) -> Any:
        return kind(types.CPointer(types.int32)), lambda context, builder, signature, arguments: arguments[0]

    return view_of
