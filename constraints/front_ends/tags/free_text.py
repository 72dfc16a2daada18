"""Free text as grammar: up to the ends of the tag whose content it is, without some strings or tokens, of a bounded length."""

from __future__ import annotations

from ...base.errors import UnsupportedKeyword
from ...base.utf8 import ALL, invert, normalize
from ...grammar.excluded_strings import Outcome, text_until
from ...grammar.expression import EMPTY, FAIL, Grammar, Node
from ...grammar.source import Limits
from ...grammar.stages import Budget, Budgets
from ...grammar.tokens import is_special, tokens_but
from .markup import Context, Markup, spelled
from .tree import OtherToken, Text


class FreeText:
    """Lowers the texts of one tree. `budgets` is given those that count tokens."""

    def __init__(self, grammar: Grammar, limits: Limits, markup: Markup, budgets: Budgets) -> None:
        self._grammar, self._limits, self._markup, self._budgets = grammar, limits, markup, budgets

    def text(self, part: Text, context: Context) -> Node:
        grammar = self._grammar
        excludes, ends = tuple(part.excludes), context.ends
        if part.max_chars is not None or part.max_tokens is not None:
            return self._bounded_text(part, context)
        left_out = {self._markup.token_id(token, context) for token in part.without_tokens or ()}
        if any(not is_special(grammar, token) for token in left_out):
            return self._markup.then_end(self._tokens(part, context, left_out), context)
        rule = grammar.rule("text")
        outcomes = self._markup.passed_over(part.without_tokens, rule, context)
        outcomes |= self._markup.exclusions(excludes, context) | self._markup.endings(context)
        at_end = FAIL if ends else EMPTY
        text = text_until(grammar, rule, outcomes, at_end, context.segment, self._limits)
        if not part.not_leading:
            return text
        others = grammar.chars(invert(normalize((ord(char), ord(char)) for char in part.not_leading)))
        if outcomes:
            raise UnsupportedKeyword(
                "together with strings to look for", path=context.path, keyword="not_leading", instead="either"
            )
        return grammar.optional(grammar.seq(grammar.segment(others, context.segment), text))

    def _tokens(self, part: Text, context: Context, left_out: set[int]) -> Node:
        """Any number of tokens but some that are text."""
        grammar = self._grammar
        if len(context.ends) > 1 or any(len(spelled(grammar, end)) > 1 and spelled(grammar, end)[0] for end in context.ends):
            raise UnsupportedKeyword(
                "text without some tokens, up to a string", path=context.path, keyword="exclude_tokens", instead="one token"
            )
        without = left_out | {grammar.special_tokens[end] for end in context.ends if end in grammar.special_tokens}
        one = tokens_but(grammar, without, self._budgets, repeated=True)
        return grammar.segment(grammar.repeat(one, 0, part.max_tokens), context.segment)

    def _bounded_text(self, part: Text, context: Context) -> Node:
        """Text of a bounded number of characters or tokens, and then the first of the ends."""
        grammar = self._grammar
        left_out = {self._markup.token_id(token, context) for token in part.without_tokens or ()}
        if part.not_leading or (part.max_chars is not None and part.without_tokens is not None):
            keyword = "not_leading" if part.not_leading else "max_chars"
            raise UnsupportedKeyword("together with other bounds", path=context.path, keyword=keyword, instead="either")
        if any(not is_special(grammar, token) for token in left_out):
            return self._markup.then_end(self._tokens(part, context, left_out), context)
        if not context.ends:
            return self._up_to(part, context, None)
        marks = [self._markup.sought(text, context) for text in context.ends]
        behind = (
            grammar.seq(self._up_to(part, context, mark), self._markup.marked(mark, context.closing.marked(mark)))
            for mark in dict.fromkeys(marks) if not any(other in mark[:-1] for other in marks)
        )  # fmt: skip
        return grammar.alt(*behind)

    def _up_to(self, part: Text, context: Context, mark: bytes | None) -> Node:
        """A bounded text and `mark`. No end and nothing excluded stands in the text or across its end."""
        grammar = self._grammar
        marks = [self._markup.sought(text, context) for text in context.ends]
        words = {*marks, *(self._markup.sought(text, context) for text in part.excludes)}
        straddling = {
            word[:k] for word in marks for k in range(1, len(word)) if mark is not None and len(word) - k < len(mark)
            and mark.startswith(word[k:])
        }  # fmt: skip
        if part.max_chars is None and not straddling:
            rule = grammar.rule("bounded text")
            outcomes = self._markup.passed_over(part.without_tokens, rule, context)
            outcomes |= {word: Outcome(FAIL, context.marker) for word in words}
            text = text_until(grammar, rule, outcomes, EMPTY, context.segment, self._limits)
        else:
            text = self._text_without(words, straddling, part, context)
        if part.max_tokens is None:
            return text
        if part.max_tokens == 0:
            return EMPTY
        counted = grammar.rule("counted text")
        grammar.define(counted, text)
        self._budgets[grammar.call(counted)] = Budget(part.max_tokens)
        return grammar.call(counted)

    def _text_without(self, words: set[bytes], straddling: set[bytes], part: Text, context: Context) -> Node:
        """Text in which none of `words` stands, and which does not end with any of `straddling`."""
        grammar = self._grammar
        one = grammar.alt(grammar.chars(ALL), *map(grammar.literal, self._markup.tokens_in_text(part.without_tokens, context)))
        anything = grammar.repeat(one)
        forbidden = [grammar.seq(anything, grammar.literal(word), anything) for word in sorted(words)]
        forbidden += [grammar.seq(anything, grammar.literal(word)) for word in sorted(straddling)]
        text = grammar.without(grammar.repeat(one, 0, part.max_chars), grammar.alt(*forbidden))
        return grammar.segment(text, context.segment)

    def other_token(self, part: OtherToken, context: Context) -> Node:
        """One token but those that the part names, and those that end the tag."""
        without = {self._markup.token_id(token, context) for token in part.without}
        without |= {self._grammar.special_tokens[end] for end in context.ends if end in self._grammar.special_tokens}
        node = tokens_but(self._grammar, without, self._budgets, repeated=False)
        return self._grammar.segment(node, context.segment)
