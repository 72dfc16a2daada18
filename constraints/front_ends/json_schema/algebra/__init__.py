"""JSON Schema as a Boolean algebra: a schema is a set of alternatives, each a set of claims about one value.

In: sites. Out: alternatives, combined, negated and told apart, with nothing left that refers to another schema about the same
value.
"""
