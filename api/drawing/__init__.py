"""Pictures of grammars and automata, as SVG and HTML, without any library."""
