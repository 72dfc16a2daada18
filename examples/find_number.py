"""Take a telephone number out of a text: the regular expression says what one looks like."""

from maskwright import generate

PATTERN = r"\d{3}-\d{4}"


def main() -> None:
    for text in ("You can call me at 555-0142 after lunch.", "Reach Dana on 555-0199 or dana@example.org."):
        print(generate(text, regex=PATTERN))


if __name__ == "__main__":
    main()
