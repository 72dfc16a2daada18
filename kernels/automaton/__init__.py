"""Constraints as tables on the device: the state of every sequence advances there, next to the sampler.

`interface` has the arrays, `reference` the operations in plain PyTorch, `gpu` the same as Triton kernels, `backend` the choice:

    advance(token, slots, tables, end_ids)                    one step of every sequence, in place
    mask_rows(states, transitions, accepting, vocabulary)     masks of a finite automaton's states, all at once

`advance` means this, for every slot:

    state FREE:  an unconstrained sequence takes any token
    state IDLE:  nobody is here, nothing is drawn
    otherwise    target = the state after the token, by the exceptions of the state, by the class of the token, or the default;
                 UNKNOWN, or nothing known of the target: the token waits in `pending`, and nothing is drawn meanwhile;
                 a target that needs more tokens than are left is refused: the token is not taken and another is drawn, with another
                 random number, from a mask that the host makes for what is left (`tight`)

A sequence that waits reads its tables again at every step, so what the host uploads needs no message to the sequences. All arrays
stay where they are, so a step can be captured in a CUDA graph together with the forward pass and the sampler.

No counters are stored beside the state. A bounded repetition has a state for each count; its tokens fall into classes by their
number of characters, and `ladder` has the state for each class: one load, like subtracting from a register, and the mask row, which
does depend on the count near its end, needs no second rule. What is a register is the number of tokens left, which no state knows.

The price: a count that nobody has reached yet is a state that the host has to learn, once for all sequences with this constraint.
`[a-z]*` misses at no step; `maxLength: 1000000` and `[a-z]{2,20000}`, alone, miss at every token until their counts were met (2.8
and 6.1 ms a miss on a busy CPU, a vocabulary of 7,000 tokens; 4 and 2 mask rows for all of it), and then never again. A register
would end that, but the automaton would have to tell which states are one but for a count far from its end; today a state is just a
number.
"""
