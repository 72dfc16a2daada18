"""The model's most probable tokens of a row, best first."""

from __future__ import annotations

import triton
import triton.language as tl

from .draw import NO_CHUNK, total_and_max
from .scores import MODEL_MAX, MODEL_SUM, NEVER, load_logits, row_start


@triton.jit
def leaders_kernel(
    scored, chunks, token_out, logprob_out, count,
    CHUNK: tl.constexpr, CHUNKS: tl.constexpr, ALIGNED: tl.constexpr,
):  # fmt: skip
    """Grid (rows,). token_out, logprob_out: [rows, count]. Each round takes the best chunk's best token, and reads only that chunk.

    Tokens are ranked by logit, then by id; `left` is the best logit of each chunk among tokens ranked behind the last one taken.
    """
    row = tl.program_id(0)
    numbers, plane = tl.arange(0, CHUNKS), chunks.plane
    is_chunk = numbers < chunks.num_chunks
    planes = chunks.statistics + row * chunks.num_chunks + numbers
    left = tl.load(planes + MODEL_MAX * plane, mask=is_chunk, other=NEVER)
    total, best = total_and_max(left, tl.load(planes + MODEL_SUM * plane, mask=is_chunk, other=0.0))
    log_total = tl.log(total)
    logits_row = row_start(scored.logits, row, scored.logits_stride, ALIGNED)
    UNITS: tl.constexpr = CHUNK // 8
    last_logit, last_token = float("inf"), -1
    for rank in range(count):
        logit = tl.max(left, axis=0)
        chunk = tl.min(tl.where(left == logit, numbers, NO_CHUNK), axis=0)
        units = chunk * UNITS + tl.arange(0, UNITS)
        tokens = units[:, None] * 8 + tl.arange(0, 8)[None, :]
        found = load_logits(logits_row, tokens, units, scored.vocab_size, 8, ALIGNED)
        behind = (found < last_logit) | ((found == last_logit) & (tokens > last_token))
        token = tl.min(tl.where((found == logit) & behind, tokens, NO_CHUNK))
        tl.store(token_out + row.to(tl.int64) * count + rank, token.to(tl.int64))
        tl.store(logprob_out + row.to(tl.int64) * count + rank, ((logit - best).to(tl.float64) - log_total).to(tl.float32))
        behind = (found < logit) | ((found == logit) & (tokens > token))
        left = tl.where(numbers == chunk, tl.max(tl.where(behind, found, NEVER)), left)
        last_logit, last_token = logit, token
