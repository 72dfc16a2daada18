"""Mask, bias, penalties, temperature, filters and draw, in one operation.

`interface` has the arrays, `reference` the operation in plain PyTorch, `gpu` the same as Triton kernels, `compiled` in C for a CPU,
and `backend` the choice between them. Implementations share one signature:

    sample(logits, rows, mask_rows=None, mask_index=None, *, vocab_size, num_top_logprobs=0, is_told=True) -> Sampled

They mean this, where `random` is a deterministic number in [0, 1) made of (seed, position):

    for row in range(len(logits)):
        model = [finite(logits[row, t]) for t in range(vocab_size)]        # fp32; NaN, -inf: the lowest number
        masked_in = tokens whose bit t % 32 of mask_rows[mask_index[row], t // 32] is 1; all if it is UNCONSTRAINED
        bans = tokens with bias -inf
        bans_overridden = bool(masked_in) and masked_in <= bans
        allowed = masked_in if bans_overridden else masked_in - bans

        score = copy of model
        for token, value in bias[row]:             if value is finite: score[token] += value
        for token, count in history[row]:
            score[token] = score[token] / repetition_penalty if score[token] > 0 else score[token] * repetition_penalty
            score[token] -= frequency_penalty * count
            if count > 0: score[token] -= presence_penalty

        best = max(score[t] for t in allowed)
        if temperature == 0:                                               # whatever else the row wants
            token = the lowest t in allowed with score[t] == best
        else:
            lag = {t: score[t] - best for t in allowed}                    # <= 0
            weight = {t: exp(lag[t] / temperature) for t in allowed}       # the best weighs 1
            # a filter compares with a threshold, so tied tokens stay or go together and the best always stays
            if top_k:      keep t with lag[t] >= the top_k-th largest lag
            if top_p < 1:  keep t where the kept tokens with larger lag weigh less than top_p * (all kept tokens)
            if min_p:      keep t with weight[t] >= min_p
            token = the first kept t, by id, where the weights of kept tokens up to and including t sum to more than
                    random * (their total)

        if the row has a program: in place of temperature and filters above, its steps in their order (`shaping.py`); of what they
            keep, the token is drawn in the same way, and share is its weight / the weights of all kept tokens

        logprob = model[token] - logsumexp(model)
        kept_mass = sum(exp(model[t] - logsumexp(model)) for t in masked_in)
        num_allowed = len(masked_in)
        (unless is_told, logprob and kept_mass are NaN)
        top_token, top_logprob = the num_top_logprobs largest of model - logsumexp(model), the lower id first on ties

Scores and lags are fp32, each operation rounded, in every implementation; weights and their sums are not exact, and each
implementation has its own exp. So two of them draw the same token unless a weight, or a sum, lies within 2**-20 (relative) of
where a filter or the draw decides. Within one implementation nothing is left open: the same row gives the same token always.

A row whose mask allows nothing, or is MISSING, gets NO_TOKEN. A row's result depends on that row alone: not on the
others, nor on their number or order.
"""
