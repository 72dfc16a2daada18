"""Structural tags, tool calls and reasoning: free text that turns into constrained parts and back, and the parser of it.

tree         what a structural tag is made of
segments     what the bytes of a part are: text, markup, arguments, reasoning
scan         text up to the first of some strings
lowering     a tree as a grammar
reading      trees from JSON: XGrammar's form
requests     the same as a request says it: the response formats of OpenAI and vLLM
structural   the source `StructuralTag`
styles       how models write tool calls, as a table
tools        the source `Tools`
arguments    single arguments by their schema, in other notations than JSON
reasoning    the source `Reasoning`; `budget` ends it in time
answer       what follows reasoning that may be left out
call_or_text one JSON object that is a call, or text
events       what a parser tells
parsing      the parser, which is the automaton itself
"""
