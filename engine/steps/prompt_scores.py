"""What the model itself thinks of the tokens of a prompt: read off the logits that its chunks give, before anything is drawn."""

from __future__ import annotations

import torch
from torch import Tensor

from ...sampling import TokenLogprob
from ..requests.output import PromptScore
from ..requests.sequence import Sequence
from ..scheduling.scheduler import Chunk


def take_prompt_scores(chunks: list[Chunk[Sequence]], logits: Tensor, vocab_size: int) -> Tensor:
    """Give the sequences whose prompts are read the scores of their tokens. Returns the rows that tokens are drawn from.

    logits: [rows, head width] of all chunks, `num_rows` of each.
    """
    if not any(chunk.reads_all for chunk in chunks):
        return logits
    drawn: list[int] = []
    row = 0
    for chunk in chunks:
        end = row + chunk.num_rows
        if chunk.reads_all:
            _score(chunk, logits[row : row + chunk.num_tokens], vocab_size)
        drawn += range(end - 1 - len(chunk.drafts), end) if chunk.completes else ()
        row = end
    return logits[drawn]


def _score(chunk: Chunk[Sequence], logits: Tensor, vocab_size: int) -> None:
    """logits: [tokens of the chunk, head width]. The chunk is not yet counted as computed."""
    sequence, first = chunk.sequence, chunk.sequence.num_computed
    prompt = sequence.request.prompt_token_ids
    followers = prompt[first + 1 : first + 1 + chunk.num_tokens]
    if not followers:
        return
    logprobs = torch.log_softmax(logits[: len(followers), :vocab_size].float(), -1)
    chosen = logprobs.gather(1, torch.tensor(followers, device=logprobs.device)[:, None])
    ranks = (logprobs > chosen).sum(1) + 1
    top = torch.topk(logprobs, min(sequence.request.num_prompt_logprobs or 0, vocab_size), dim=1)
    alternatives = [tuple(map(TokenLogprob, *each)) for each in zip(top.indices.tolist(), top.values.tolist(), strict=True)]
    scores = list(map(PromptScore, followers, chosen[:, 0].tolist(), ranks.tolist(), alternatives))
    sequence.prompt_scores[first : first + len(scores)] = scores  # computed anew, they are the same
