"""Constraints as tables on the device: the state of every sequence advances there, next to the sampler.

`interface` has the arrays, `reference` the operations in plain PyTorch, `gpu` the same as Triton kernels, `backend` the choice:

    advance(token, slots, tables, end_ids)                    one step of every sequence, in place
    mask_rows(states, transitions, accepting, vocabulary)     masks of a finite automaton's states, all at once
    ban(logits, mask_rows, mask_index)                        masks put on the logits of another sampler

`advance` means this, for every slot:

    state FREE:  an unconstrained sequence takes any token
    state IDLE:  nobody is here, nothing is drawn
    otherwise    target = the state after the token, by the exceptions of the state, by the class of the token, or the default;
                 UNKNOWN, or nothing known of the target: the token waits in `pending`, and nothing is drawn meanwhile;
                 where another state stands for the target, that one is meant; its counts are registers (below);
                 a target that needs more tokens than are left is refused: the token is not taken and another is drawn, with another
                 random number, from a mask that the host makes for what is left (`tight`)

A sequence that waits reads its tables again at every step, so what the host uploads needs no message to the sequences. All arrays
stay where they are, so a step can be captured in a CUDA graph together with the forward pass and the sampler.

Counters are registers. A state in which some counts are farther from their ends than a token reaches is not on the device at all;
one that *stands* for all states that differ from it in those counts alone is
(`constraints/token_automaton/counter_abstraction.py`), and the slot says how far they are:

    room    bytes that may be read before one of them has to be looked at; a token takes its `length` from it
    more    tokens that their lower bounds need at most, beside the `needed` of the state
    reach   of a state: the room that a slot must have to be there; 0 where nothing is counted

A token into a state for which another one stands leads there, with the room that both the slot and the new counts leave. Where that
is less than the state's reach, or the tokens left might not do, the token waits (COUNTED): the host knows where the sequence is
and places it anew, mostly in the same state with more room, and near an end, or near the last token, in the state itself. So
`[a-z]{2,20000}` and `maxLength: 1000000` are a few states and rows. Room is in bytes whatever a count counts, characters, digits
or items: it may run out too early, which costs a question, and never too late.

Counts within reach of a token have a state each; tokens fall into classes by where they lead, and `ladder` has the state for each.
"""
