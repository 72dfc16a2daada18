"""How Numba is told of records (records.py): every value is an address of int32 words."""

from __future__ import annotations

import operator
from typing import Any

from numba.core import types
from numba.core.cgutils import int8_t, int32_t, intp_t
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_global, signature
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_builtin,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
)

from .records import View, Words


class WordsType(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Words")


class RecordType(types.Type):
    def __init__(self, cls: Any) -> None:
        self.cls = cls
        super().__init__(name=cls.__name__)


class RecordsType(types.Type):
    def __init__(self, cls: Any) -> None:
        self.cls = cls
        super().__init__(name=f"Records[{cls.__name__}]")


class ViewType(types.Type):
    def __init__(self, cls: type[View]) -> None:
        self.cls = cls
        super().__init__(name=cls.__name__)


WORDS = WordsType()


class _Address(models.PrimitiveModel):
    def __init__(self, manager: Any, of: types.Type) -> None:
        super().__init__(manager, of, int32_t.as_pointer())


for _type in (WordsType, RecordType, RecordsType, ViewType):
    register_model(_type)(_Address)


def _type_of(kind: Any) -> types.Type:
    """The type of a view's attribute."""
    if kind is int:
        return types.int64
    if kind is Words:
        return WORDS
    if not isinstance(kind, type):
        return RecordsType(kind.__args__[1])
    return ViewType(kind) if issubclass(kind, View) else RecordType(kind)


# -- types --------------------------------------------------------------------------------------------------------------


@infer_getattr
class _FieldsOfRecords(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, value: Any, field: str) -> types.Type | None:
        place = value.cls.PLACES.get(field)
        return None if place is None else types.int64 if place.num_words is None else WORDS


@infer_getattr
class _AttributesOfViews(AttributeTemplate):
    key = ViewType

    def generic_resolve(self, value: Any, name: str) -> types.Type | None:
        return _type_of(value.cls.KINDS[name]) if name in value.cls.KINDS else None


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, arguments: Any, keywords: Any) -> Any:
        base, index = arguments
        if not isinstance(index, (types.Integer, types.Boolean)):
            return None
        if isinstance(base, WordsType):
            return signature(types.int64, base, types.int64)
        return signature(RecordType(base.cls), base, types.int64) if isinstance(base, RecordsType) else None


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, arguments: Any, keywords: Any) -> Any:
        base, index, value = arguments
        numbers = (types.Integer, types.Boolean)
        if isinstance(base, WordsType) and isinstance(index, numbers) and isinstance(value, numbers):
            return signature(types.none, base, types.int64, types.int64)
        return None


@infer_global(operator.add)
class _Add(AbstractTemplate):
    def generic(self, arguments: Any, keywords: Any) -> Any:
        base, words = arguments
        is_from_words = isinstance(base, WordsType) and isinstance(words, types.Integer)
        return signature(WORDS, base, types.int64) if is_from_words else None


# -- code ---------------------------------------------------------------------------------------------------------------


def _load(builder: Any, address: Any, index: Any) -> Any:
    return builder.sext(builder.load(builder.gep(address, [index])), intp_t)


def _store(builder: Any, address: Any, index: Any, value: Any) -> None:
    builder.store(builder.trunc(value, int32_t), builder.gep(address, [index]))


def _constant_word(builder: Any, address: Any, index: int) -> Any:
    """A word that says where something is: it stays the same while compiled code runs."""
    word = builder.load(builder.gep(address, [intp_t(index)]))
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return builder.sext(word, intp_t)


@lower_builtin(operator.getitem, WordsType, types.int64)
def _load_word(context: Any, builder: Any, of: Any, arguments: Any) -> Any:
    return _load(builder, *arguments)


@lower_builtin(operator.setitem, WordsType, types.int64, types.int64)
def _store_word(context: Any, builder: Any, of: Any, arguments: Any) -> Any:
    _store(builder, *arguments)
    return context.get_dummy_value()


@lower_builtin(operator.add, WordsType, types.int64)
def _later_words(context: Any, builder: Any, of: Any, arguments: Any) -> Any:
    return builder.gep(arguments[0], [arguments[1]])


@lower_builtin(operator.getitem, RecordsType, types.int64)
def _one_record(context: Any, builder: Any, of: Any, arguments: Any) -> Any:
    return builder.gep(arguments[0], [builder.mul(arguments[1], intp_t(of.args[0].cls.SIZE))])


def _field(builder: Any, address: Any, place: Any) -> Any:
    """The address of a field."""
    if place.is_byte:
        return builder.gep(builder.bitcast(address, int8_t.as_pointer()), [intp_t(place.at)])
    return builder.gep(address, [intp_t(place.at // 4)])


@lower_getattr_generic(RecordType)
def _load_field(context: Any, builder: Any, of: Any, value: Any, field: str) -> Any:
    place = of.cls.PLACES[field]
    at = _field(builder, value, place)
    if place.num_words is not None:
        return at
    if place.num_bits is None:
        return builder.sext(builder.load(at), intp_t)
    word = builder.zext(builder.load(at), intp_t)
    return builder.and_(builder.lshr(word, intp_t(place.shift)), intp_t((1 << place.num_bits) - 1))


@lower_setattr_generic(RecordType)
def _store_field(context: Any, builder: Any, of: Any, arguments: Any, field: str) -> None:
    place = of.args[0].cls.PLACES[field]
    at, value = _field(builder, arguments[0], place), arguments[1]
    if place.num_bits is not None:
        mask = (1 << place.num_bits) - 1
        others = builder.and_(builder.zext(builder.load(at), intp_t), intp_t(~(mask << place.shift)))
        value = builder.or_(others, builder.shl(builder.and_(value, intp_t(mask)), intp_t(place.shift)))
    builder.store(builder.trunc(value, int8_t if place.is_byte else int32_t), at)


@lower_getattr_generic(ViewType)
def _attribute(context: Any, builder: Any, of: Any, value: Any, name: str) -> Any:
    word = of.cls.WORDS[name]
    found = _constant_word(builder, value, word.index)
    if of.cls.KINDS[name] is not int:
        return builder.gep(value, [found])
    if word.since is None:
        return found
    distance = builder.sub(found, _constant_word(builder, value, word.since))
    return builder.ashr(distance, intp_t(word.shift)) if word.shift else distance


# -- functions of loops -------------------------------------------------------------------------------------------------


@intrinsic
def words_at(typing_context, address):  # type: ignore[no-untyped-def]
    """Words, given by their address, which costs a call a tenth of what an array does: indexing an array looks whether the index
    is negative, and passing one on counts references. The caller keeps the memory alive."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return WORDS(types.int64), generate


def view_at(cls: type[View]) -> Any:
    kind = ViewType(cls)

    @intrinsic
    def at(typing_context, address):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return kind(types.int64), generate

    return at


def part_at(cls: Any) -> Any:
    kind = _type_of(cls)

    @intrinsic
    def at(typing_context, words):  # type: ignore[no-untyped-def]
        return kind(WORDS), lambda context, builder, signature, arguments: arguments[0]

    return at


@intrinsic
def pointer(typing_context, array):  # type: ignore[no-untyped-def]
    """The memory of an array that is an argument of the entry point: as `Words` of int32, else as Numba's pointers."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    return (WORDS if array.dtype == types.int32 else types.CPointer(array.dtype))(array), generate
