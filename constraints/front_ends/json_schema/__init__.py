"""JSON Schema: from a document to a grammar of JSON text.

    values     JSON values: parsed without rounding, their one canonical text
    keyword_table  the keywords, one entry each: drafts, vocabulary, type of values, what it asserts or applies
    drafts     the drafts: names, which keywords have a meaning, where subschemas stand
    document   schema documents: sites (one subschema each), addresses, anchors, references
    keywords   which keywords of a site are in force; `reading`: their values, checked
    parts      the parts of a schema; `numbering`, `sameness`: schemas that say the same
    branches   `$ref`, `allOf`, `anyOf`, `oneOf` resolved into alternatives, with `products`, `exclusions`, `annotations`
    negation   the ways to violate each assertion; `membership`: whether a given value satisfies a schema
    shapes     what an alternative says about the values of one JSON type
    disjoint   proofs that no value satisfies two shapes
    text       JSON strings and white space as grammar nodes
    containers arrays and objects as grammar nodes
    report     what became of each keyword
    lowering   the whole: conjunctions of sites to nodes and rules
"""
