"""Turn a request into a small command language, given as a grammar in GBNF."""

from maskwright import generate

GRAMMAR = """
root   ::= device " " state
device ::= "lamp" | "heater" | "radio"
state  ::= "on" | "off" | "at " [1-9] [0-9]? "%"
"""


def main() -> None:
    for request in ("Please switch the radio off.", "Set the lamp to 40 percent."):
        print(generate(request, grammar=GRAMMAR))


if __name__ == "__main__":
    main()
