"""A watermark (Kirchenbauer et al., ICML 2023): half of the tokens, another half behind each token, are drawn more often.

Who knows the key counts how many tokens of a text are in their half, without the model. Under a constraint the mask has the last
word, and tokens that it forces say nothing, so they are left out of the count.
"""

from dataclasses import dataclass
from math import sqrt

import torch

from maskwright import LLM, LogitsStage, SamplingParams
from maskwright.sampling.logits_stages import LOGITS_STAGES


@LOGITS_STAGES.register("watermark")
@dataclass(frozen=True)
class Watermark(LogitsStage):
    """Adds `bias` to the logits of the green tokens: those whose hash with the token before them and the key is even."""

    key: int
    bias: float = 6.0

    def green(self, before, tokens):
        """Whether tokens are green behind others: int64 tensors that broadcast together."""
        mixed = (before + self.key) * 0x9E3779B97F4A7C1 + tokens * 0x2545F4914F6CDD1  # int64 wraps around
        mixed = (mixed ^ (mixed >> 29)) * 0x369DEA0F31A53F5
        return ((mixed >> 32) & 1).bool()

    def apply(self, logits, context):
        every = torch.arange(context.vocab_size, device=context.device)
        return logits + self.bias * self.green(context.tokens(last=1), every)

    def z_score(self, token_ids):
        """How many standard deviations more tokens are green than by chance."""
        tokens = torch.tensor(token_ids)
        is_green = self.green(tokens[:-1], tokens[1:])
        return (2 * int(is_green.sum()) - len(is_green)) / sqrt(len(is_green))


def main() -> None:
    llm, mark = LLM(), Watermark(key=1234)
    for name, processors in (("plain", []), ("marked", [mark])):
        params = SamplingParams(temperature=4, seed=1, logits_processors=processors)
        (output,) = llm.generate("Tell me about yourself.", regex="([a-z]{2,8} ){40}", sampling=params)
        print(f"{name:6} z = {mark.z_score(output.token_ids):.1f}")


if __name__ == "__main__":
    main()
