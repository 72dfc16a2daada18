"""Classifier-free guidance (Sanchez et al., 2023, arXiv:2306.17806): what a prompt says is amplified against another prompt."""

from dataclasses import dataclass

from maskwright import LLM, LogitsStage, SamplingParams


@dataclass(frozen=True)
class Guidance(LogitsStage):
    """Log-probabilities become other + scale * (own - other), where the other text has `other_prompt` for its prompt.

    scorer: `llm.scorer()`, which scores the other texts; scale 1 changes nothing. It holds a model, so it cannot be saved.
    """

    scorer: object
    other_prompt: tuple[int, ...]
    scale: float = 1.5

    def apply(self, logits, context):
        texts = [[*self.other_prompt, *row.output_token_ids] for row in context.rows]
        other = self.scorer.logits(texts).log_softmax(-1)
        return other + self.scale * (logits.log_softmax(-1) - other)


def main() -> None:
    llm = LLM(prompt_style="plain")
    prompt, other = "The parcel never arrived. Topic:", "Topic:"
    other_prompt = tuple(llm.tokenizer.encode(other))
    for scale in (0.0, 1.0, 3.0):
        guidance = Guidance(llm.scorer(), other_prompt, scale)
        params = SamplingParams(temperature=0, logits_processors=[guidance])
        (output,) = llm.generate(prompt, choice=["billing", "shipping", "account"], sampling=params)
        print(f"scale {scale}: {output.text}")


if __name__ == "__main__":
    main()
