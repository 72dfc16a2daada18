"""Views: values of compiled code whose attributes are words of an array, loaded where they are used.

`layout` (tables.py) is such a view: `t.next` is the word of the arena that says where the table `next` begins. A named
tuple of a hundred offsets would be copied for every call of a function that is not inlined, which takes longer than
what most of them do. A view is one address.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numba.core import types
from numba.core.cgutils import int32_t, intp_t
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model


@dataclass(frozen=True)
class Word:
    """The value of an attribute: a word of the array plus a constant; or its distance from another word, in units of
    2^shift."""

    index: int
    plus: int = 0
    since: int | None = None
    shift: int = 0


def view(name: str, words: dict[str, Word]) -> Any:
    """A compiled function of an array of int32 words (its address, see `words_at`) that returns a view of it.

    The words must not change while compiled code runs.
    """

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
