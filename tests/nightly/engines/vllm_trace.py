"""One run of vLLM on the CPU, in this process: the trace of `trace_of_requests.py` with one backend.

    python vllm_trace.py MODEL --backend maskwright [--speculation] [--reasoning] --out RESULT.json

Prints a line "ok|failed <tab> what <tab> why" of each check, and writes figures.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "ERROR"}

import trace_of_requests as trace

MAX_TOKENS, ABORTED = 500, 5
PROMPT = 'Answer. {"n1": 5, "name": "ab", "kind": "a"} <1,2,3> <tool_call>{"city": "Paris"}</tool_call> {"n1": 5, "name": '
Texts = dict[str, tuple[str, str | None]]


class Clock:
    """Time in the backend, measured around the calls of the engine's manager."""

    def __init__(self) -> None:
        from vllm.v1.structured_output import StructuredOutputManager

        self.seconds: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        for name in ("grammar_bitmask", "accept_tokens", "validate_tokens"):
            self._wrap(StructuredOutputManager, name)

    def _wrap(self, owner: type, name: str) -> None:
        original = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            begun = time.perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                self.seconds[name] += time.perf_counter() - begun
                self.calls[name] += 1

        setattr(owner, name, timed)

    def figures(self) -> dict[str, float]:
        return {name: 1e6 * self.seconds[name] / self.calls[name] for name in self.calls}  # microseconds a call

    def clear(self) -> None:
        self.seconds.clear()
        self.calls.clear()


def check(what: str, holds: bool, why: str = "") -> None:
    print(f"{'ok' if holds else 'failed'}\t{what}\t{why}", flush=True)


def started(options: argparse.Namespace) -> Any:
    from vllm import LLM

    from maskwright.integrations import vllm as maskwright_vllm

    maskwright_vllm.register()
    config: dict[str, Any] = {"backend": options.backend}
    more: dict[str, Any] = {}
    if options.reasoning:
        config["reasoning_parser"] = "deepseek_r1"
    if options.speculation:
        more["speculative_config"] = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3, "prompt_lookup_min": 1}
    return LLM(options.model, enforce_eager=True, max_model_len=1024, max_num_seqs=trace.NUM_REQUESTS, dtype="float32", seed=0,
               structured_outputs_config=config, **more)  # fmt: skip


def parameters(case: trace.Case | None, temperature: float, seed: int, **more: Any) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    asked = None if case is None else StructuredOutputsParams(**{case.kind: case.value})
    return SamplingParams(temperature=temperature, seed=seed, max_tokens=MAX_TOKENS, structured_outputs=asked, skip_special_tokens=False, **more)


def run(engine: Any, asked: dict[str, Any], aborted: int = 0) -> tuple[Texts, dict[str, str]]:
    """Texts with why they ended, and requests that were refused. The first `aborted` requests are aborted after some steps."""
    from vllm.exceptions import VLLMValidationError

    refused: dict[str, str] = {}
    for name, params in asked.items():
        try:
            engine.add_request(name, PROMPT, params)
        except VLLMValidationError as error:
            refused[name] = str(error)
    texts: Texts = {}
    leaving, steps = [name for name in asked if name not in refused][:aborted], 0
    while engine.has_unfinished_requests():
        for output in engine.step():
            if output.finished:
                texts[output.request_id] = output.outputs[0].text, output.outputs[0].finish_reason
        steps += 1
        if steps == ABORTED and leaving:
            engine.abort_request(leaving)
    return texts, refused


def judged(texts: Texts, prefix: str = "") -> tuple[Counter[str], list[str]]:
    """How many texts are valid, invalid or cut off at the limit of tokens; the invalid ones."""
    counts: Counter[str] = Counter()
    wrong = []
    for case in trace.cases():
        if case.name not in texts:
            continue
        text, reason = texts[case.name]
        tail = text.partition(prefix)[2] if prefix else text
        kind = "cut off" if reason == "length" else "valid" if reason == "stop" and case.is_valid(tail) else "invalid"
        counts[kind] += 1
        if kind == "invalid":
            wrong.append(f"{case.name}: {reason} {text[:80]!r}")
    return counts, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--backend", default="maskwright")
    parser.add_argument("--speculation", action="store_true")
    parser.add_argument("--reasoning", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()

    begun = time.perf_counter()
    engine = started(options).llm_engine
    clock, started_in = Clock(), time.perf_counter() - begun
    is_ours = options.backend == "maskwright"
    bias = {}
    if options.reasoning:  # random weights would think for ever
        end = engine.get_tokenizer().convert_tokens_to_ids("</think>")
        bias = {"logit_bias": {end: 12.0}}
    asked = {case.name: parameters(case, 1.0, number, **bias) for number, case in enumerate(trace.cases())}

    run(engine, dict(list(asked.items())))  # warm: all is compiled, all states are met
    clock.clear()
    begun = time.perf_counter()
    texts, refused = run(engine, asked)
    seconds, figures = time.perf_counter() - begun, clock.figures()
    counts, wrong = judged(texts, "</think>" if options.reasoning else "")
    check("64 requests of mixed constraints", not wrong and len(texts) + len(refused) == len(asked) and not (is_ours and refused),
          "; ".join(wrong[:3]) or f"{dict(counts)}, {len(refused)} refused")  # fmt: skip

    greedy = {name: parameters(case, 0.0, 0, **bias) for name, case in [(case.name, case) for case in trace.cases()]}
    greedy_texts, _ = run(engine, greedy)

    bad = trace.Case("bad", "json", trace.REFUSED, bool)
    few = dict(list(asked.items())[1:9])
    beside, refused_bad = run(engine, {"bad": parameters(bad, 1.0, 0), **few, "free": parameters(None, 1.0, 1)})
    told = refused_bad.get("bad", "")
    check("a bad schema beside good ones", set(beside) == {*few, "free"} and not judged(beside, "</think>" if options.reasoning else "")[1]
          and (not is_ours or "#/properties/a" in told), told)  # fmt: skip
    left, _ = run(engine, asked, aborted=20)
    check("abort in the middle", not judged(left, "</think>" if options.reasoning else "")[1] and len(left) >= len(asked) - 20 - len(refused), f"{len(left)} ended")

    drafts = {}
    if options.speculation:
        metrics = {metric.name: getattr(metric, "value", None) for metric in engine.get_metrics()} if engine.log_stats else {}
        drafts = {name: metrics[name] for name in metrics if "spec_decode" in name}
    options.out.write_text(json.dumps({
        "backend": options.backend, "speculation": options.speculation, "reasoning": options.reasoning, "start_s": started_in,
        "trace_s": seconds, "microseconds_a_call": figures, "outcomes": dict(counts), "refused": refused, "wrong": wrong,
        "greedy": {name: text for name, (text, _) in greedy_texts.items()}, "drafts": drafts,
    }, indent=1))  # fmt: skip
    sys.exit(0)


if __name__ == "__main__":
    main()
