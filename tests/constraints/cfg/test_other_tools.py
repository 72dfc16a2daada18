"""What a text in XGrammar's EBNF and llguidance's Lark means, asked of XGrammar and llguidance themselves.

Only grammars on which the documentation leaves no choice; where the tools differ from it, or among each other, docs/grammars.md says
what holds here.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from itertools import product

import pytest

from maskwright.constraints import Compiler, ConstraintError, Ebnf, Lark, Source, Vocabulary

BYTES = [bytes([byte]) for byte in range(256)]
COMPILER = Compiler(Vocabulary([*BYTES, None], eos_token_ids=[256]))
SHORT = ["".join(letters) for length in range(4) for letters in product("ab<>1!", repeat=length)]

RULES = '\nx ::= "1" "b"?\ny ::= "<" root ">" | "b"\nz ::= "a"\ne ::= ""'
EBNF = [
    r'root ::= "\x41BC" | "\u0041BC" | "\U0001F600" | "b\/"', r"root ::= [^] [\x61-\x62] [a\-z]?", r"root ::= [-a] [a-] [^^] [\]\[]?",
    r"root ::= [\.\*\+\?\(\)\{\}\|\/\$1]", 'root ::= ( ) "a" ()', 'root ::= "a"{0} "b"{1,} "1"{1,-1}', 'root ::= ("a"{2}){1,2} | (""|"b")*',
    'root ::= ("a"*)* ("b"?){3}', 'root ::= a\na ::= "a"\n  "b"', 'root ::= a.b-c\na.b-c ::= "a" # c\n# d', 'root ::= root "a" | "b" | "<" root ">"',
    'root ::= "a" root "b" | ""', "root ::= root root | [ab]", 'root ::= a "1" | "b"\na ::= root "<" | "a"', 'root ::= e root "a" | "b"' + RULES,
    'root[capture="r", max_tokens=3] ::= "a"+', 'root ::= r "!"\nr[max_chars=2] ::= [ab]*', 'root ::= r "b"\nr[lazy] ::= [ab]+',
    'root ::= r "b"\nr[lazy] ::= Regex("a.*?1")', r'root ::= Regex("\\w+\\d?")', r'root ::= Regex("a.b", flags="s")', 'root ::= Regex("(?:ab)+|[^ab]")',
    'root ::= Regex("A|1", flags="i")', r'root ::= Regex("[^b]+", json_string=true)', 'root ::= Regex("a|b"){2} | Regex("1*") "!"',
    'root ::= Substring("a", "b", "a")', "root ::= Substring()", 'root ::= "a" (= "b")', 'root ::= "a" (= "b")\nx ::= "c"',
    *(f"root ::= {macro}{RULES}" for macro in (
        'TagDispatch(("<", x), (">>", y))', 'TagDispatch(("<", x), loop_after_dispatch=false)', 'TagDispatch(("<>", x), excludes=("!",))',
        'TagDispatch(("<a", x), loop_after_dispatch=false, excludes=("!!", "a!"))', 'TagDispatch(excludes=("ab",))', "TagDispatch()",
        'TagDispatch(("<",x),("<",z))', 'TagDispatch(("aa", x), ("ba", z))', 'TagDispatch(("<", e))', 'TagDispatch(("<>", x), excludes=(">",))',
        'TagDispatch(("<", x), excludes=("1",)) "!"', '(TagDispatch(("<", x), excludes=("!",)) "!"){1,2}',
    )),
]  # fmt: skip
EBNF_REFUSED = [
    'root ::= "a" |', 'root ::= ("a" | )', "root ::= ", 'root ::= "a"{,3}', 'root ::= "a"{2,1}', 'root ::= "a"++', r"root ::= [\d]", "root ::= [b-a]",
    'root ::= "a\nb"', 'root ::= a a ::= "x"', 'root ::= "a"\nroot ::= "b"', 'root[lazy, lazy] ::= "a"', 'root[foo] ::= "a"', 'root[] ::= "a"',
    'root ::= Regex("a", flags="x")', 'root ::= Regex("a", "b")', 'root ::= Regex("a",)', 'root ::= TagDispatch(("", root))',
    'root ::= TagDispatch(("ab", root), excludes=("a",))', 'root ::= TagDispatch(("a", other))', 'root ::= Substring("a", x=true)', "root ::= Token()",
]  # fmt: skip


def accepted_by(source: Source, texts: Sequence[str]) -> list[str]:
    constraint = COMPILER.compile(source)
    return [text for text in texts if constraint.accepts(text.encode())]


@pytest.fixture(scope="module")
def xgrammar():
    module = pytest.importorskip("xgrammar")
    if tuple(map(int, version("xgrammar").split(".")[:2])) < (0, 2):
        pytest.skip("an XGrammar without these macros")
    return module


@pytest.mark.parametrize("text", EBNF)
def test_ebnf_means_what_xgrammar_takes_it_for(text, xgrammar):
    info = xgrammar.TokenizerInfo([*BYTES, b"</s>"], vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[256])
    compiled = xgrammar.GrammarCompiler(info).compile_grammar(xgrammar.Grammar.from_ebnf(text))
    theirs = []
    for sample in SHORT:
        matcher = xgrammar.GrammarMatcher(compiled, terminate_without_stop_token=True)
        if not sample:  # whether the beginning is an end is asked of one that does not stop there
            matcher = xgrammar.GrammarMatcher(compiled)
        is_read = all(matcher.accept_token(byte) for byte in sample.encode())
        if is_read and (matcher.is_terminated() if sample else matcher.accept_token(256)):
            theirs.append(sample)
    assert accepted_by(Ebnf(text, root="root", notation="xgrammar"), SHORT) == theirs


@pytest.mark.parametrize("text", EBNF_REFUSED)
def test_ebnf_that_xgrammar_refuses_is_refused(text, xgrammar):
    with pytest.raises(RuntimeError):
        xgrammar.Grammar.from_ebnf(text)
    with pytest.raises(ConstraintError):
        COMPILER.compile(Ebnf(text, root="root", notation="xgrammar"))


LARK = [
    'start: "a"{2} | "b"{1,} | "1"{,2} "!"', 'start: ["a"] ("b" | "1")+', 'start: |"a"', 'start: "AB"i | "a" ""', 'start: /a+/ B\nB: "b".."b" | /[1!]/',
    "start: /(?i)A1|b/ /x?/", "start: /a.b/s", "start: /^a$/", "start: /a|/ /(?:)/", r"start: /\pL+/ | /\p{Nd}/", "start: A\nA: /[ab]+/ & ~/ab/",
    'start: A\nA: ~"a"', "start: A\nA: /a.*/ & /.*b/", 'start: A\nA: "a" "b"\n%ignore " "',
    "%import common.INT\nstart: INT", "%import common (INT, LETTER)\nstart: INT LETTER?", "%import common.INT -> N\nstart: N",
    'start: start "a" | "b"', 'start: "a" start "b" |', 'start: e e\ne: | "a"', 'start: %json {"enum": [1, 11]} "a"', 'start: %regex {"substring_chars": "ab1"}',
    'start: %regex {"substring_chunks": ["a", "b", "a"]}', 'start: r "b"\nr[lazy]: /[ab]+/', 'start: r\nr[stop="!"]: /[ab!]*/',
    'start: r "1"\nr[suffix="!"]: /[ab]*/', 'start: (t)* TEXT\nt[lazy]: TEXT "<"\nTEXT: /[ab<]*/', "start[capture]: /a+/",
    'start: %json\n\n{"enum": [1, 11]}\n| "b"', 'start: a "b"\na[]: "a"', r'start: "a\u0062" | "\ud83d\ude00"',
    'start: a::0\na::_: "a" a::incr(_) %if lt(_, 2) | "" %if ge(_, 1)', 'start: "a" %lark {\nstart: "b"? "1"\n} "!"?',
]  # fmt: skip


@pytest.mark.parametrize("text", LARK)
def test_lark_means_what_llguidance_takes_it_for(text):
    llguidance = pytest.importorskip("llguidance")

    class Tokenizer:
        eos_token_id, bos_token_id, special_token_ids = 256, None, (256,)
        tokens = (*BYTES, b"</s>")

        def __call__(self, text: bytes) -> list[int]:
            return list(text)

    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer()))
    first = llguidance.LLMatcher(tokenizer, llguidance.LLMatcher.grammar_from_lark(text), log_level=0)
    assert not first.is_error(), first.get_error()
    theirs = []
    for sample in SHORT:
        matcher = first.deep_copy()
        if matcher.try_consume_tokens(list(sample.encode())) == len(sample) and matcher.is_accepting():
            theirs.append(sample)
    assert accepted_by(Lark(text), SHORT) == theirs
