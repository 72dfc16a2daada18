"""A stage of one's own in a few lines: no pair of tokens comes twice in an output, whatever the constraint."""

from dataclasses import dataclass

from maskwright import LLM, LogitsStage, SamplingParams
from maskwright.sampling.logits_stages import LOGITS_STAGES


@LOGITS_STAGES.register("bigram-blocker")
@dataclass(frozen=True)
class BigramBlocker(LogitsStage):
    """Takes `penalty` from the logit of every token that followed the last one before, in prompt or output."""

    penalty: float = float("inf")

    def apply(self, logits, context):
        tokens = context.tokens()  # [rows, longest], -1 before shorter texts
        last = tokens[:, -1:]
        row, place = ((tokens[:, :-1] == last) & (last >= 0)).nonzero(as_tuple=True)
        logits[row, tokens[row, place + 1]] -= self.penalty
        return logits


def main() -> None:
    llm = LLM()
    for processors in ([], [BigramBlocker()]):
        params = SamplingParams(temperature=0, loop_bound=0, logits_processors=processors)
        (output,) = llm.generate("Say something.", regex="[a-z ]{60}", sampling=params)
        pairs = list(zip(output.token_ids, output.token_ids[1:], strict=False))
        print(f"{len(pairs) - len(set(pairs)):3} pairs came again: {output.text}")


if __name__ == "__main__":
    main()
