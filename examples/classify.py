"""Sort support messages into given classes."""

from maskwright import generate

CLASSES = ["billing", "technical", "shipping", "account"]
MESSAGES = [
    "My card was charged two times for the same order.",
    "I forgot my password and cannot log in.",
    "Where is my parcel? It should have arrived on Monday.",
]


def main() -> None:
    for message, label in zip(MESSAGES, generate(MESSAGES, choice=CLASSES), strict=True):
        print(f"{label:10} {message}")


if __name__ == "__main__":
    main()
