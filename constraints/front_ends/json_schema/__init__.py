"""JSON Schema: from a document to a grammar of JSON text.

    values     JSON values: parsed without rounding, their one canonical text
    drafts     the drafts: names, keywords, where subschemas stand
    document   schema documents: sites (one subschema each), addresses, anchors, references
    keywords   what each keyword is: enforced, annotation, or refused by name
    parts      what a schema is composed of; `numbering`, `sameness`: schemas that say the same
    branches   `$ref`, `allOf`, `anyOf`, `oneOf` resolved into alternatives, with `products`, `exclusions`, `annotations`
    shapes     what an alternative says about the values of one JSON type
    disjoint   proofs that no value satisfies two shapes
    text       JSON strings and white space as grammar nodes
    containers arrays and objects as grammar nodes
    report     what became of each keyword
    lowering   the whole: conjunctions of sites to nodes and rules
"""
