"""Which logits a step needs: where masks leave few tokens, those of these tokens alone."""

from __future__ import annotations

from collections.abc import Sequence as Items

import numpy as np
from numpy.typing import NDArray

from ..requests.sequence import Sequence
from ..scheduling.scheduler import Chunk

SHARE = 64  # of the vocabulary at most one token in so many is picked out: sixteen neighbours are computed together


def wanted_columns(chunks: Items[Chunk[Sequence]], vocab_size: int) -> NDArray[np.int64] | None:
    """The tokens, ascending, that masks may allow behind these chunks; None: all, or more than are worth picking out.

    Drafts, searches, stages of one's own, and whoever asks what the model thinks of its tokens, need all of them.
    """
    most, found = vocab_size // SHARE, list[NDArray[np.int64]]()
    for chunk in chunks:
        if not chunk.num_rows:
            continue
        tokens = _few_tokens(chunk, most)
        if tokens is None:
            return None
        found.append(tokens)
    if not found:
        return None
    columns = found[0] if len(found) == 1 else np.unique(np.concatenate(found))
    return columns if len(columns) <= most else None


def _few_tokens(chunk: Chunk[Sequence], most: int) -> NDArray[np.int64] | None:
    sequence = chunk.sequence
    needs_all = bool(chunk.drafts) or chunk.reads_all or sequence.search_group is not None or sequence.stages is not None
    if needs_all or sequence.guide is None or sequence.request.tells_probabilities:
        return None
    return sequence.guide.legal_tokens(most)
