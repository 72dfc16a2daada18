"""Python types of every kind that Pydantic knows, for tests that walk them."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import enum
import ipaddress
import math
import pathlib
import re
import typing
import uuid
import zoneinfo
from collections.abc import Callable, Generator, Iterable, Mapping, MutableMapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    Required,
    TypeVar,
)

import pydantic
from annotated_types import Len, Not, Predicate
from pydantic import (
    UUID1,
    UUID4,
    UUID7,
    AfterValidator,
    AliasChoices,
    AliasPath,
    AwareDatetime,
    Base64Bytes,
    Base64Str,
    Base64UrlBytes,
    Base64UrlStr,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Discriminator,
    Field,
    FutureDate,
    FutureDatetime,
    ImportString,
    Json,
    NaiveDatetime,
    PastDate,
    PastDatetime,
    PlainValidator,
    RootModel,
    Secret,
    SecretBytes,
    SecretStr,
    SerializeAsAny,
    SkipValidation,
    StringConstraints,
    Tag,
    WithJsonSchema,
    WrapValidator,
    computed_field,
    conint,
    conlist,
    constr,
    field_validator,
    model_validator,
    validate_call,
)
from pydantic import dataclasses as pydantic_dataclasses
from pydantic.alias_generators import to_camel
from pydantic.experimental.pipeline import validate_as
from pydantic_core import core_schema
from typing_extensions import TypeAliasType, TypedDict, Unpack

T = TypeVar("T")
K = TypeVar("K")
UTC = datetime.UTC
PLUS_TWO = datetime.timezone(timedelta(hours=2))
Url, MultiHostUrl = pydantic.AnyUrl, pydantic.PostgresDsn


def of_core(schema: Any) -> type:
    """A type whose core schema is given."""
    return type("OfCore", (), {"__get_pydantic_core_schema__": classmethod(lambda cls, source, handler: schema)})


def text(pattern: str, **more: Any) -> Any:
    return Annotated[str, Field(pattern=pattern, **more)]


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Number(enum.IntEnum):
    ONE = 1
    TWO = 2


class Size(enum.StrEnum):
    S = "s"
    L = "l"


class Flags(enum.IntFlag):
    READ = 1
    WRITE = 2


class Mixed(enum.Enum):
    ONE = 1
    TEXT = "two"
    NOTHING = None
    TRUE = True
    HALF = 0.5


class Places(enum.Enum):
    ORIGIN = (0, 0)
    UNIT = (1, 1)


class Lower(enum.Enum):
    A = "a"

    @classmethod
    def _missing_(cls, value: object) -> Lower | None:
        return cls.A if value == "A" else None


class Halves(Decimal, enum.Enum):
    ONE = Decimal("0.5")
    THREE = Decimal("1.5")


class Days(enum.Enum):
    FIRST = date(2024, 1, 1)


class Plain(BaseModel):
    name: str
    count: int = 0


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    name: str = ""


class Puppy(BaseModel):
    kind: Literal["puppy", "whelp"] = "puppy"
    weeks: int = 3


class ColorTag(BaseModel):
    kind: Literal[Color.RED] = Color.RED
    a: int = 1


class OtherTag(BaseModel):
    kind: Literal[Color.BLUE] = Color.BLUE
    b: int = 1


class AliasedTag(BaseModel):
    kind: Literal["x"] = Field(alias="type")
    x: int


class AliasedOther(BaseModel):
    kind: Literal["y"] = Field(alias="type")
    y: int


def kind_of(value: Any) -> str | None:
    if isinstance(value, dict):
        return "cat" if "lives" in value else "dog"
    return getattr(value, "kind", None)


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]
Chosen = Annotated[Annotated[Cat, Tag("cat")] | Annotated[Dog, Tag("dog")], Discriminator(kind_of)]


class Owner(BaseModel):
    pet: Pet
    other: Pet | None = None


class Node(BaseModel):
    value: int
    left: Node | None = None
    right: Optional[Node] = None  # noqa: UP045


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int = 1


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int = 1


class OpenInts(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int] = Field(init=False)
    a: str = "x"


class OpenKeys(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[Annotated[str, Field(pattern="^x_[a-z]+$")], int] = Field(init=False)
    a: str = "x"


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    i: int
    f: float
    s: str
    b: bool
    d: date
    u: uuid.UUID
    t: tuple[int, ...]
    m: Decimal
    e: Color
    by: bytes
    td: timedelta


class Stripped(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True, str_min_length=2, str_max_length=5)
    a: str
    b: Annotated[str, Field(pattern="^ab*$")]


class Upper(BaseModel):
    model_config = ConfigDict(str_to_upper=True)
    a: Annotated[str, Field(pattern="^[A-Z]{2}$")]


class Coerced(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)
    a: str
    b: Annotated[str, Field(pattern=r"^\d{2,3}$")]


class PythonRe(BaseModel):
    model_config = ConfigDict(regex_engine="python-re")
    year: text(r"(?P<year>\d{4})\Z")
    look: text(r"^(?=.*\d)(?!0)[a-z\d]{3,6}$")
    verbose: text(r"(?x) ^ [a-z]+  # letters \n - \d \Z")
    word: text(r"^\W+$")
    flags: text(r"^(?:(?i:abc)|(?s:.))$")


class RustRe(BaseModel):
    year: text(r"^(?P<year>\d{4})\z")
    named: text(r"\A(?<n>a|b)+$")
    verbose: text("(?x) ^ [a-z]+  # letters\n - \\d \\z")
    word: text(r"^\W+$")
    classes: text(r"^[[:alpha:]&&[^a-c]]{2}[\d--4-9]\pL\p{Greek}$")
    folded: text(r"(?i)^straße$")
    lines: text(r"(?m)^x$")
    lazy: text(r"(?U)^a+b*?$")
    ascii: text(r"^(?-u:\w)$")
    edge: text(r"\bab\b{end}")


class Aliased(BaseModel):
    a: int = Field(alias="A")
    b: int = Field(validation_alias="B")
    c: int = Field(default=0, serialization_alias="C")


class Choices(BaseModel):
    a: int = Field(validation_alias=AliasChoices("first", "second"))
    b: str = Field(default="x", validation_alias=AliasChoices("b1", AliasPath("deep", "b2")))


class Path_(BaseModel):
    a: int = Field(validation_alias=AliasPath("values", 0))
    b: int = Field(validation_alias=AliasPath("values", 1))
    c: str = Field(default="x", validation_alias=AliasPath("deep", "inner", "c"))


class ByName(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    a: int = Field(alias="A")


class OnlyName(BaseModel):
    model_config = ConfigDict(validate_by_alias=False, validate_by_name=True)
    a: int = Field(alias="A")


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)
    first_name: str
    last_name: str = ""


class Computed(BaseModel):
    width: float

    @computed_field
    @property
    def area(self) -> float:
        return self.width**2


class Checked(BaseModel):
    a: int

    @field_validator("a")
    @classmethod
    def is_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("odd")
        return value


class Whole(BaseModel):
    a: int
    b: int

    @model_validator(mode="after")
    def is_ordered(self) -> Whole:
        if self.a > self.b:
            raise ValueError("a > b")
        return self


class Before(BaseModel):
    a: int

    @model_validator(mode="before")
    @classmethod
    def unwrap(cls, value: Any) -> Any:
        return value


class PostInit(BaseModel):
    a: int

    def model_post_init(self, context: Any, /) -> None:
        if self.a > 10:
            raise ValueError("large")


class Numbers(RootModel[list[int]]):
    pass


class Named(RootModel[dict[text("^[a-z]$"), int]]):
    pass


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)
    a: Annotated[str, Field(frozen=True)]


class Excluded(BaseModel):
    a: int
    b: int = Field(default=1, exclude=True)
    c: Annotated[int, Field(deprecated=True)] = 2


class Validated(BaseModel):
    model_config = ConfigDict(validate_default=True)
    a: int = Field(default=1, ge=0)


class BadDefault(BaseModel):
    model_config = ConfigDict(validate_default=True)
    a: int = Field(default=-1, ge=0)


class BadDefaults(BaseModel):
    model_config = ConfigDict(validate_default=True)
    plain: Plain = None
    plains: list[Plain] = None
    itself: BadDefaults | None = 3
    made: int = Field(default_factory=str)
    fine: Plain = Plain(name="x")


class Unbounded(BaseModel):
    least: float = -math.inf
    most: Annotated[float, Field(le=math.inf, examples=[math.nan, 1])] = math.inf
    step: int = Field(default=1, json_schema_extra={"example": math.inf, "maximum": 5})
    other: Any = Field(default=..., json_schema_extra=lambda schema: schema.update(example=math.inf))


class Box(BaseModel, Generic[T]):
    item: T
    more: list[T] = []


class Discarded(BaseModel):
    a: int
    class_level: typing.ClassVar[int] = 3
    _private: int = 2


class Inherited(Plain):
    extra: date | None = None


class EnumValues(BaseModel):
    model_config = ConfigDict(use_enum_values=True)
    color: Color


class NanModel(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)
    a: float


class Base64Model(BaseModel):
    model_config = ConfigDict(val_json_bytes="base64", ser_json_bytes="base64")
    a: Annotated[bytes, Field(min_length=2, max_length=4)]


class HexModel(BaseModel):
    model_config = ConfigDict(val_json_bytes="hex")
    a: Annotated[bytes, Field(min_length=1, max_length=3)]


class SecondsModel(BaseModel):
    model_config = ConfigDict(val_temporal_unit="seconds", ser_json_timedelta="float")
    a: timedelta
    b: datetime.datetime


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Partial(TypedDict, total=False):
    a: Required[str]
    b: date


class StrictDict(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")
    a: int


class OpenDict(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")
    a: int


class ExtraItems(TypedDict, extra_items=int):
    a: str


class ClosedItems(TypedDict, closed=True):
    a: str


class OldMovie(typing.TypedDict, total=False):
    title: str


@dataclasses.dataclass
class Point:
    x: int
    y: Annotated[float, Field(ge=0)] = 0.0
    z: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Hidden:
    a: int
    b: int = dataclasses.field(default=1, init=False)
    c: dataclasses.InitVar[int] = 3
    d: dataclasses.KW_ONLY = None
    e: str = "x"


@pydantic_dataclasses.dataclass(config=ConfigDict(extra="forbid"))
class ClosedPoint:
    x: int
    name: Annotated[str, Field(max_length=3, alias="n")]


@pydantic_dataclasses.dataclass
class Checking:
    a: int

    @field_validator("a")
    @classmethod
    def is_small(cls, value: int) -> int:
        if value > 9:
            raise ValueError("large")
        return value


@dataclasses.dataclass
class PostInitData:
    a: int

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError("negative")


class Pair(NamedTuple):
    a: int
    b: str = "x"


class Custom:
    def __init__(self, value: int) -> None:
        self.value = value

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return core_schema.no_info_after_validator_function(cls, core_schema.int_schema(ge=0))


class Even(int):
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return core_schema.no_info_after_validator_function(cls.check, core_schema.int_schema())

    @classmethod
    def check(cls, value: int) -> int:
        if value % 2:
            raise ValueError("odd")
        return value


def must_be_even(value: int) -> int:
    if value % 2:
        raise ValueError("odd")
    return value


def wrapped(value: Any, handler: Any) -> int:
    return int(handler(value))


@validate_call
def spend(amount: Annotated[int, Field(ge=0)], *, on: date | None = None) -> int:
    return amount


@validate_call
def placed(a: int, /, *rest: Annotated[int, Field(ge=0)], c: bool = True) -> int:
    return a


@validate_call
def collected(*each: date) -> int:
    return len(each)


@validate_call
def keyed(a: int = 1, **others: Annotated[str, Field(max_length=2)]) -> int:
    return a


@validate_call
def unpacked(x: int = 1, **others: Unpack[Partial]) -> int:
    return x


@validate_call
def never(a: int, /, *, b: int) -> int:
    return a


class Shape(BaseModel):
    kind: str


class Circle(Shape):
    kind: Literal["circle"] = "circle"
    radius: pydantic.PositiveFloat


class Drawing(Shape):
    kind: Literal["drawing"] = "drawing"
    of: list[AnyShape] = Field(default=[], max_length=2)


AnyShape = Annotated[Circle | Drawing, Field(discriminator="kind")]
Drawing.model_rebuild()


class Page(BaseModel, Generic[K, T]):
    model_config = ConfigDict(alias_generator=to_camel)
    found_items: dict[K, list[T]]
    next_page: str | None = None


class Rooted(RootModel[Annotated[dict[str, "Rooted"], Field(max_length=2)] | int]):
    pass


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    name: Annotated[str, Field(pattern=r"^[A-Z]\w*$")]
    others: tuple[Linked, ...] = ()


class Keywords(BaseModel):
    class_: str = Field(alias="class")
    quoted: int = Field(alias='a "b"\\')
    größe: Annotated[float, Field(ge=0.5, multiple_of=0.25)] = 1


UserId = NewType("UserId", int)
Alias = TypeAliasType("Alias", list[int])
JsonLike = TypeAliasType("JsonLike", "dict[str, JsonLike] | list[JsonLike] | str | int | None")
Wide = TypeAliasType("Wide", dict[text("^k"), "Wide | int"])

TYPES: dict[str, Any] = {
    # numbers
    "int": int, "float": float, "bool": bool, "none": None, "str": str, "complex": complex,
    "int bounds": Annotated[int, Field(ge=-5, lt=10)], "int multiple": Annotated[int, Field(multiple_of=7, gt=0)],
    "float bounds": Annotated[float, Field(gt=0, le=1.5)], "float multiple": Annotated[float, Field(multiple_of=0.5)],
    "float multiple of a tenth": Annotated[float, Field(multiple_of=0.1, ge=0, le=100)],
    "finite": pydantic.FiniteFloat, "nan": Annotated[float, Field(allow_inf_nan=True)], "positive": pydantic.PositiveInt,
    "strict int": pydantic.StrictInt, "strict float": pydantic.StrictFloat, "strict bool": pydantic.StrictBool,
    "strict str": pydantic.StrictStr, "strict bytes": pydantic.StrictBytes, "conint": conint(ge=3, le=4),
    "decimal": Decimal, "decimal digits": Annotated[Decimal, Field(max_digits=6, decimal_places=2)],
    "decimal step": Annotated[Decimal, Field(multiple_of=Decimal("0.05"))],
    "decimal places": Annotated[Decimal, Field(decimal_places=3, ge=0)], "decimal max digits": Annotated[Decimal, Field(max_digits=4)],
    "decimal bounds": Annotated[Decimal, Field(gt=Decimal("0.5"), lt=Decimal("99.25"))],
    "decimal all": Annotated[Decimal, Field(max_digits=5, decimal_places=2, ge=Decimal("-10.5"), le=100)],
    "decimal digits and bound": Annotated[Decimal, Field(max_digits=4, ge=2)],
    "decimal multiple": Annotated[Decimal, Field(multiple_of=Decimal("0.25"), ge=0)],
    "decimal below 1e-4": Annotated[Decimal, Field(gt=Decimal("1e-5"), lt=Decimal("1e-4"), decimal_places=7)],
    "decimal around zero": Annotated[Decimal, Field(ge=Decimal("-2.5e-5"), le=Decimal("1.25e-5"), decimal_places=8, max_digits=9)],
    "decimal strict": Annotated[Decimal, Field(strict=True)], "decimal nan": Annotated[Decimal, Field(allow_inf_nan=True)],
    "decimal many places": Annotated[Decimal, Field(decimal_places=8, max_digits=10)],
    "decimal digits below places": Annotated[Decimal, Field(decimal_places=4, max_digits=2)],
    "fraction": Fraction, "byte size": ByteSize, "int subclass": Even,
    # strings
    "lengths": Annotated[str, Field(min_length=2, max_length=4)], "constr": constr(to_lower=True, pattern="^[a-z]+$"),
    "strip": constr(strip_whitespace=True, min_length=1, max_length=3), "upper": Annotated[str, StringConstraints(to_upper=True)],
    "lower length": Annotated[str, StringConstraints(to_lower=True, min_length=3, max_length=3)],
    "rust word": text(r"^\w{2}$"), "rust not word": text(r"^\W+$"), "rust digits": text(r"^\d{2,}$"), "rust space": text(r"^\s\S$"),
    "rust search": text(r"b+c"), "rust name": text(r"(?P<year>\d{4})-(?<m>\d\d)"), "rust anchors": text(r"\A[a-c]+\z"),
    "rust verbose": text("(?x) ^ a b \\  # comment\n c $"), "rust insensitive": text(r"(?i)^kelvin$"), "rust dot": text("^.$"),
    "rust dot all": text("(?s)^.$"), "rust multiline": text("(?m)^a$"), "rust edge": text(r"\bfoo\b"),
    "rust posix": text(r"^[[:digit:][:upper:]]+$"), "rust property": text(r"^\p{Lu}\p{Greek}\P{L}$"),
    "rust set": text(r"^[\w--[a-z_]]{2}$"), "rust and": text(r"^[a-z&&[^aeiou]]+$"), "rust hex": text(r"^\x41\u{42}\u0043$"),
    "rust nested": text(r"^[a-c[x-z]]+$"), "rust length": text("^[a-z]*$", min_length=2, max_length=3),
    "annotated compiled": Annotated[str, Field(pattern=re.compile(r"(?P<a>x)\w\Z"))],
    "python models": PythonRe, "pattern": re.Pattern, "pattern of str": re.Pattern[str], "rust models": RustRe,
    "secret": SecretStr, "secret length": Annotated[SecretStr, Field(min_length=3, max_length=5)], "secret bytes": SecretBytes, "pattern of bytes": re.Pattern[bytes],
    "secret date": Secret[date], "secret int": Secret[Annotated[int, Field(ge=3)]],
    "import": ImportString,
    # bytes
    "bytes": bytes, "bytes length": Annotated[bytes, Field(min_length=2, max_length=3)],
    "base64 bytes": Base64Bytes, "base64 str": Base64Str, "base64url bytes": Base64UrlBytes, "base64url str": Base64UrlStr,
    "base64 str length": Annotated[Base64Str, Field(min_length=1, max_length=2)], "base64url str length": Annotated[Base64UrlStr, Field(min_length=3)],
    "any bound": Annotated[Any, Field(ge=3)], "any length": Annotated[Any, Field(min_length=1, max_length=2)],
    "any step": Annotated[Any, Field(multiple_of=3, lt=10)], "any float step": Annotated[Any, Field(multiple_of=0.5)],
    "any bound and length": Annotated[Any, Field(ge=1, max_length=2)],
    "base64 length": Annotated[Base64Bytes, Field(max_length=6)], "base64 mode": Base64Model, "hex mode": HexModel,
    # times
    "date": date, "datetime": datetime.datetime, "time": datetime.time, "timedelta": timedelta,
    "date ge": Annotated[date, Field(ge=date(2024, 1, 1))], "date range": Annotated[date, Field(gt=date(1999, 12, 30), le=date(2000, 3, 1))],
    "date lt": Annotated[date, Field(lt=date(1000, 2, 3))], "past date": PastDate, "future date": FutureDate,
    "past": PastDatetime, "future": FutureDatetime, "aware": AwareDatetime, "naive": NaiveDatetime,
    "naive range": Annotated[NaiveDatetime, Field(ge=datetime.datetime(2024, 2, 28, 12, 30, 15, 500), lt=datetime.datetime(2024, 3, 1))],
    "datetime ge": Annotated[datetime.datetime, Field(ge=datetime.datetime(2024, 1, 1))],
    "aware ge": Annotated[AwareDatetime, Field(ge=datetime.datetime(2024, 1, 1, tzinfo=UTC))],
    "aware range": Annotated[AwareDatetime, Field(gt=datetime.datetime(2024, 1, 1, 5, tzinfo=PLUS_TWO), le=datetime.datetime(2024, 1, 1, 6, 0, 0, 7, tzinfo=PLUS_TWO))],
    "datetime aware bound": Annotated[datetime.datetime, Field(le=datetime.datetime(2024, 1, 1, tzinfo=UTC))],
    "aware first": Annotated[AwareDatetime, Field(le=datetime.datetime(1, 1, 1, 12, tzinfo=PLUS_TWO))],
    "time range": Annotated[datetime.time, Field(ge=datetime.time(9), lt=datetime.time(17, 30))],
    "time micro": Annotated[datetime.time, Field(gt=datetime.time(9, 0, 0, 250))],
    "time aware": Annotated[datetime.time, Field(ge=datetime.time(9, tzinfo=UTC))],
    "timedelta years": Annotated[timedelta, Field(ge=timedelta(days=300, hours=5), lt=timedelta(days=1100))],
    "timedelta long": Annotated[timedelta, Field(gt=timedelta(days=365))], "timedelta back": Annotated[timedelta, Field(le=timedelta(days=-364))],
    "datetime zone": of_core(core_schema.datetime_schema(tz_constraint=-5400)), "datetime utc": of_core(core_schema.datetime_schema(tz_constraint=0)),
    "datetime zone range": of_core(core_schema.datetime_schema(tz_constraint=19800, ge=datetime.datetime(2024, 2, 28, 23, tzinfo=UTC), lt=datetime.datetime(2024, 3, 1, tzinfo=PLUS_TWO))),
    "datetime zone naive bound": of_core(core_schema.datetime_schema(tz_constraint=3600, gt=datetime.datetime(2024, 2, 28, 23))),
    "time zone": of_core(core_schema.time_schema(tz_constraint=3600, ge=datetime.time(8, 30))),
    "timedelta range": Annotated[timedelta, Field(ge=timedelta(seconds=1), le=timedelta(hours=2))],
    "timedelta gt": Annotated[timedelta, Field(gt=timedelta(0))], "timedelta lt": Annotated[timedelta, Field(lt=timedelta(days=-1))],
    "dates": dict[date, datetime.time], "seconds": SecondsModel, "strict date": Annotated[date, Field(strict=True)],
    # identifiers
    "uuid": uuid.UUID, "uuid1": UUID1, "uuid4": UUID4, "uuid7": UUID7, "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address, "ip any": pydantic.IPvAnyAddress, "ipv4 network": ipaddress.IPv4Network,
    "ipv6 network": ipaddress.IPv6Network, "ip any network": pydantic.IPvAnyNetwork, "ipv4 interface": ipaddress.IPv4Interface,
    "ipv6 interface": ipaddress.IPv6Interface, "ip any interface": pydantic.IPvAnyInterface,
    "any url": pydantic.AnyUrl, "http": pydantic.HttpUrl, "any http": pydantic.AnyHttpUrl, "file url": pydantic.FileUrl,
    "ftp": pydantic.FtpUrl, "websocket": pydantic.WebsocketUrl, "any websocket": pydantic.AnyWebsocketUrl,
    "postgres": pydantic.PostgresDsn, "mysql": pydantic.MySQLDsn, "mariadb": pydantic.MariaDBDsn, "redis": pydantic.RedisDsn,
    "mongo": pydantic.MongoDsn, "kafka": pydantic.KafkaDsn, "nats": pydantic.NatsDsn, "amqp": pydantic.AmqpDsn,
    "cockroach": pydantic.CockroachDsn, "clickhouse": pydantic.ClickHouseDsn, "snowflake": pydantic.SnowflakeDsn,
    "url short": Annotated[pydantic.HttpUrl, pydantic.UrlConstraints(max_length=30)],
    "url host": Annotated[Url, pydantic.UrlConstraints(allowed_schemes=["s3"], host_required=True)],
    "url port": Annotated[Url, pydantic.UrlConstraints(allowed_schemes=["x"], default_port=3, default_path="/a", default_host="h")],
    "path": pathlib.Path, "pure path": pathlib.PurePath, "posix path": pathlib.PurePosixPath,
    "new path": pydantic.NewPath, "file path": pydantic.FilePath, "directory path": pydantic.DirectoryPath,
    "posix": pathlib.PosixPath,
    # enumerations
    "enum": Color, "int enum": Number, "str enum": Size, "flags": Flags, "mixed enum": Mixed, "tuples": Places, "missing": Lower,
    "decimal enum": Halves, "days": Days, "literal": Literal["a", 1, None, True], "literal enum": Literal[Color.RED], "literal enums": Literal[Color.RED, Color.BLUE],
    "literal int enum": Literal[Number.ONE], "literal str enum": Literal[Size.S], "literal mixed": Literal[Mixed.HALF, "x"],
    "literal bytes": Literal[b"ab"], "literal nothing": Literal[Mixed.NOTHING], "use enum values": EnumValues,
    # containers
    "list": list[int], "bare list": list, "list bounds": Annotated[list[int], Field(min_length=1, max_length=3)], "conlist": conlist(str, max_length=2),
    "set": set[int], "set bounds": Annotated[set[int], Field(min_length=2, max_length=3)], "frozenset": frozenset[str], "bare set": set,
    "set of floats": Annotated[set[float], Field(min_length=2)], "set of dates": Annotated[set[date], Field(min_length=2)],
    "set of unions": Annotated[set[int | float | bool], Field(min_length=2)], "set of bools": Annotated[set[bool], Field(min_length=2)],
    "set of uuids": Annotated[set[uuid.UUID], Field(min_length=2)], "set of decimals": Annotated[set[Decimal], Field(min_length=2)],
    "set of lower": Annotated[set[constr(to_lower=True)], Field(min_length=2)], "set of tuples": Annotated[set[tuple[int, str]], Field(min_length=2)],
    "set of lists": set[list[int]], "set of dicts": set[dict[str, int]], "set of models": set[Plain], "set of frozen": set[Frozen],
    "set of points": set[Point], "set of sets": set[frozenset[int]], "set of any": set[Any], "set of bytes": Annotated[set[bytes], Field(min_length=2)],
    "deque": collections.deque[int], "deque length": Annotated[collections.deque[int], Field(max_length=2)], "tuple": tuple[int, str],
    "empty tuple": tuple[()], "tuple rest": tuple[int, ...], "bare tuple": tuple, "tuple bounds": Annotated[tuple[int, ...], Field(min_length=1, max_length=2)],
    "tuple unpacked": tuple[int, *tuple[str, ...], bool], "sequence": Sequence[int], "sequence of str": Sequence[str], "iterable": Iterable[int],
    "generator": Generator[int, None, None], "named tuple": Pair, "untyped named tuple": collections.namedtuple("untyped", "a b"),
    "abstract set": typing.AbstractSet[int], "mutable sequence": typing.MutableSequence[int],
    # mappings
    "dict": dict[str, int], "bare dict": dict, "dict int": dict[int, int], "dict key pattern": dict[text("^[a-z]{2}$"), int],
    "dict key length": dict[Annotated[str, Field(min_length=1, max_length=2)], int], "dict key bounds": dict[Annotated[int, Field(ge=0, lt=50)], int],
    "dict key multiple": dict[Annotated[int, Field(multiple_of=5)], int], "dict enum": dict[Color, int], "dict int enum": dict[Number, int],
    "dict literal": dict[Literal["a", "b"], int], "dict literal int": dict[Literal[1, 2], int], "dict date": dict[date, int],
    "dict date bounds": dict[Annotated[date, Field(ge=date(2024, 5, 6))], int], "dict datetime": dict[datetime.datetime, int],
    "dict uuid": dict[uuid.UUID, int], "dict bool": dict[bool, int], "dict float": dict[float, int], "dict float bounds": dict[Annotated[float, Field(ge=0.5, le=9)], int],
    "dict decimal": dict[Decimal, int], "dict decimal places": dict[Annotated[Decimal, Field(decimal_places=1)], int],
    "dict union": dict[int | str, int], "dict optional": dict[int | None, int], "dict tuple": dict[tuple[int, int], int],
    "dict time": dict[datetime.time, int], "dict timedelta": dict[timedelta, int], "dict bytes": dict[bytes, int], "dict ip": dict[ipaddress.IPv4Address, int],
    "dict url": dict[pydantic.HttpUrl, int], "dict strict int": dict[pydantic.StrictInt, int], "dict any": dict[Any, int], "dict none": dict[None, int],
    "dict path": dict[pathlib.Path, int], "dict strip": dict[constr(strip_whitespace=True, min_length=1), int], "dict validated": dict[Annotated[str, AfterValidator(str.upper)], int],
    "dict str enum": dict[Size, int], "dict mixed enum": dict[Mixed, int], "dict base64": dict[Base64Str, int], "dict json": dict[Json[int], int],
    "dict root": dict[RootModel[str], int], "dict few": dict[Annotated[int, Field(gt=8, lt=12)], int], "dict literal enum": dict[Literal[Color.RED], int], "dict complex": dict[complex, int],
    "dict bounds": Annotated[dict[str, int], Field(min_length=1, max_length=2)], "dict int bounds": Annotated[dict[int, int], Field(min_length=2, max_length=2)],
    "mapping": Mapping[str, int], "mutable mapping": MutableMapping[int, str], "default dict": collections.defaultdict[int, list[int]],
    "ordered dict": collections.OrderedDict[str, int], "counter": collections.Counter[str], "counter int": collections.Counter[int],
    # JSON, unions, aliases
    "json": Json, "json int": Json[int], "json list": Json[list[Annotated[int, Field(ge=0)]]], "json model": Json[Plain], "json str": Json[str], "json any": Json[Any],
    "json bounds": Json[Annotated[str, Field(min_length=2, max_length=2)]],
    "union": int | str, "optional": int | None, "union models": Cat | Dog | None, "left to right": Annotated[int | str, Field(union_mode="left_to_right")],
    "union bounds": Annotated[int, Field(ge=3)] | Annotated[str, Field(pattern="^a")], "pet": Pet, "owner": Owner, "chosen": Chosen,
    "nested pets": Annotated[Annotated[Cat | Dog, Field(discriminator="kind")] | Puppy, Field(discriminator="kind")],
    "three pets": Annotated[Cat | Dog | Puppy, Field(discriminator="kind")], "color tags": Annotated[ColorTag | OtherTag, Field(discriminator="kind")],
    "aliased tags": Annotated[AliasedTag | AliasedOther, Field(discriminator="kind")], "pets": list[Pet],
    "chosen str": Annotated[Annotated[int, Tag("i")] | Annotated[str, Tag("s")], Discriminator(lambda v: "i" if isinstance(v, int) else "s")],
    "alias": Alias, "recursive alias": JsonLike, "wide": Wide, "new type": UserId, "json value": pydantic.JsonValue, "any": Any, "object": object,
    "type variable": T, "bound": TypeVar("Bound", bound=int), "constrained": TypeVar("Constrained", int, str),
    # models
    "plain": Plain, "node": Node, "closed": Closed, "open": Open, "open ints": OpenInts, "open keys": OpenKeys, "strict": Strict, "stripped": Stripped, "upper model": Upper, "coerced": Coerced,
    "aliased": Aliased, "choices": Choices, "alias path": Path_, "by name": ByName, "only name": OnlyName, "camel": Camel, "computed": Computed, "checked": Checked,
    "whole": Whole, "before": Before, "post init": PostInit, "root": Numbers, "root names": Named, "excluded": Excluded, "validated default": Validated, "bad default": BadDefault, "bad defaults": BadDefaults, "unbounded": Unbounded, "box": Box[int],
    "box of dates": Box[Annotated[date, Field(ge=date(2020, 1, 1))]], "bare box": Box, "discarded": Discarded, "inherited": Inherited, "nan model": NanModel, "list of models": list[Plain],
    "shapes": list[AnyShape], "page": Page[Number, date], "page of shapes": Page[str, AnyShape], "rooted": Rooted, "linked": Linked, "keywords": Keywords,
    "dict of models": dict[str, Plain], "movie": Movie, "partial": Partial, "strict dict": StrictDict, "open dict": OpenDict, "extra items": ExtraItems, "closed items": ClosedItems, "old movie": OldMovie,
    "point": Point, "hidden": Hidden, "closed point": ClosedPoint, "checking": Checking, "post init data": PostInitData,
    "function": spend, "placed": placed, "collected": collected, "keyed": keyed, "unpacked": unpacked, "never": never,
    # validators and others
    "custom": Custom, "after": Annotated[int, AfterValidator(must_be_even)], "before int": Annotated[int, BeforeValidator(int)], "wrap": Annotated[int, WrapValidator(wrapped)],
    "plain validator": Annotated[int, PlainValidator(int)], "skip": SkipValidation[int], "as any": SerializeAsAny[Plain], "with schema": Annotated[int, WithJsonSchema({"type": "integer", "minimum": 3})],
    "wrong schema": Annotated[int, WithJsonSchema({"type": "string"})], "extra schema": Annotated[int, Field(json_schema_extra={"minimum": 5})],
    "examples": Annotated[int, Field(examples=[1])], "instance": pydantic.InstanceOf[int], "callable": Callable, "type": type[int], "callable int": Callable[[int], int],
    "fail fast": Annotated[list[int], pydantic.FailFast()], "validate as": Annotated[Decimal, Field(strict=True, gt=0)], "predicate": Annotated[int, Predicate(lambda v: v > 3)],
    "not": Annotated[int, Not(lambda v: v > 3)], "annotated len": Annotated[str, Len(1, 2)],
    "bound after validator": Annotated[int, AfterValidator(must_be_even), Field(ge=4)], "pattern after validator": Annotated[str, AfterValidator(str.strip), Field(pattern="^a$")],
    "bound on optional": Annotated[int | None, Field(ge=3)], "bound on union": Annotated[int | float, Field(ge=3)], "length on optional": Annotated[str | None, Field(max_length=2)],
    "pattern on optional": Annotated[str | None, Field(pattern="^a$")], "bound on any": Annotated[Any, Field(ge=3)],
    "pipeline": Annotated[int, validate_as(int).gt(3)], "pipeline strip": Annotated[str, validate_as(str).str_strip().str_lower().len(1, 3)],
    "date string": Annotated[str, BeforeValidator(lambda v: v), Field(max_length=3)], "zone": zoneinfo.ZoneInfo,
}  # fmt: skip
