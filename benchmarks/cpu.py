"""Maskwright and llama.cpp (the wheel xllamacpp) on a CPU, in turns, on the same GGUF files: free, with a schema, with a neighbour.

    python benchmarks/cpu.py MODEL.gguf [--types Q8_0 Q4_1 Q4_0 BF16] [--shape] [--threads N] [--rounds 3] [--out FILE.json]
    python benchmarks/cpu.py MODEL.gguf --batch 1 4 16 64

The files are MODEL.gguf as it is and in other types of blocks, and with --shape random weights of Qwen3-0.6B's shape, which are
written here. Each engine has a process of its own and is asked in turns; a figure is the best of the rounds. llama.cpp runs as
a good user of it would: of several numbers of threads and ways to wait, on each file, the one that decodes fastest. Tokens a
second of one sequence: `prefill` of a prompt of some 400 tokens, `decode` of 64 more, `schema` of an object with ten fields
(tokens of the answer by the time of the whole request), and `beside`, decode while another process keeps one core busy. `cpu
ms` is processor time for each request of prompt and 64 tokens: what a busy machine does not distort as much.

With --batch: tokens a second of that many requests at once, llama.cpp's in as many slots; each has a prompt of some 150 tokens, of
which 100 are the same for all and may be known from the round before, and gets 32 tokens. No round begins after 30 seconds.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from result_files import amount, count, errors_as_messages, require_engines, result_file, there
from rich.console import Console
from rich.table import Table

TEXT = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")[:1500]
NUM_TOKENS, CONTEXT = 64, 1024
BATCH_TOKENS, BATCH_CONTEXT, BATCH_SECONDS = 32, 256, 30.0
SHAPE = "shape-"  # how names of files of random weights begin
FIELDS = ("name", "street", "city", "country", "mail", "job", "team", "role", "level", "note")
SCHEMA = {
    "type": "object",
    "properties": {name: {"type": "string", "enum": [f"{name} {word}" for word in ("one", "two", "three")]} for name in FIELDS},
    "required": list(FIELDS),
    "additionalProperties": False,
}
ENGINES = ("maskwright", "llama.cpp")


# ---- one engine in a process of its own: a line with a task in, a line with figures out


def maskwright_worker(path: Path, threads: int, batch: int) -> None:
    from maskwright import LLM, SamplingParams

    llm = LLM(path, threads=threads, max_model_len=BATCH_CONTEXT if batch else CONTEXT, max_sequences=max(1, batch))
    free = SamplingParams(temperature=0, max_tokens=NUM_TOKENS, ignore_eos=True)
    bound = SamplingParams(temperature=0, max_tokens=400)
    few = SamplingParams(temperature=0, max_tokens=BATCH_TOKENS, ignore_eos=True)

    def answer(task: str, prompt: str) -> dict[str, float]:
        start = time.perf_counter()
        if task == "schema":
            output = llm.generate(prompt, sampling=bound, schema=SCHEMA)[0]
            return {"schema": len(output.token_ids) / (time.perf_counter() - start)}
        if task == "batch":
            outputs = llm.generate(batch_prompts(prompt, batch), sampling=few)
            return {"batch": sum(len(output.token_ids) for output in outputs) / (time.perf_counter() - start)}
        times = []
        for _ in llm.stream_tokens(prompt, sampling=free):
            times.append(time.perf_counter())
        num_prompt = len(llm.tokenizer.encode(prompt))
        return {"prefill": num_prompt / (times[0] - start), "decode": (NUM_TOKENS - 1) / (times[NUM_TOKENS - 1] - times[0])}

    serve(answer, path)


def llama_cpp_worker(path: Path, threads: int, decode_threads: int, poll: int, batch: int) -> None:
    """`poll`: from 0, threads that wait sleep at once, to 100, they spin."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path, params.verbosity = str(path), -1
    params.n_ctx, params.n_parallel = (batch * BATCH_CONTEXT, batch) if batch else (CONTEXT, 1)
    params.cpuparams.n_threads, params.cpuparams_batch.n_threads = decode_threads, threads
    params.cpuparams.poll = params.cpuparams_batch.poll = poll
    server = xllamacpp.Server(params)

    def answer(task: str, prompt: str) -> dict[str, float]:
        request = {"prompt": prompt, "temperature": 0, "cache_prompt": False, "max_tokens": NUM_TOKENS, "ignore_eos": True}
        if task == "schema":
            request |= {"json_schema": SCHEMA, "max_tokens": 400, "ignore_eos": False}
        start = time.perf_counter()
        if task == "batch":
            request |= {"cache_prompt": True, "max_tokens": BATCH_TOKENS}
            requests = [{**request, "prompt": text} for text in batch_prompts(prompt, batch)]
            with ThreadPoolExecutor(batch) as pool:
                answers = list(pool.map(server.handle_completions, requests))
            seconds = time.perf_counter() - start
            parsed = [json.loads(found) if isinstance(found, str) else found for found in answers]
            return {"batch": sum(found["timings"]["predicted_n"] for found in parsed) / seconds}
        found = server.handle_completions(request)
        seconds = time.perf_counter() - start
        timings = (json.loads(found) if isinstance(found, str) else found)["timings"]
        if task == "schema":
            return {"schema": timings["predicted_n"] / seconds}
        return {"prefill": timings["prompt_per_second"], "decode": timings["predicted_per_second"]}

    serve(answer, path)


def batch_prompts(prompt: str, batch: int) -> list[str]:
    """A text that is the same in all, then one that is in none."""
    number, _, text = prompt.partition(" ")
    return [f"{text[:400]} {number} {place}: {text[400 + place : 600 + place]}" for place in range(batch)]


def serve(answer: Any, path: Path) -> None:
    """Answer the tasks on standard input until it ends. Every prompt begins in another way, so that none is known already."""
    text = TEXT[:400] if path.name.startswith(SHAPE) else TEXT  # tokens are letters there
    for number, line in enumerate(sys.stdin):
        before = time.process_time()
        found = answer(line.strip(), f"{number} {text}")
        print("RESULT " + json.dumps({**found, "cpu_ms": 1000 * (time.process_time() - before)}), flush=True)


class Worker:
    """The engine's process."""

    def __init__(self, engine: str, path: Path, threads: int, *options: str) -> None:
        command = [sys.executable, __file__, str(path), "--threads", str(threads), "--worker", engine, *options]
        self.options = " ".join(options)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def ask(self, task: str) -> dict[str, float]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(task + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("RESULT "):
                found: dict[str, float] = json.loads(line.removeprefix("RESULT "))
                return found
        raise SystemExit(f"the process of an engine ended: {self._process.args}")

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@contextmanager
def neighbour() -> Iterator[None]:
    """A process that keeps one core busy, until this one is gone."""
    process = subprocess.Popen([sys.executable, "-c", "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def batches(path: Path, threads: int, rounds: int, counts: list[int]) -> dict[str, dict[str, float]]:
    """Tokens a second of both engines at so many requests, the best of the rounds; llama.cpp with the better of its settings."""
    best: dict[str, dict[str, float]] = {engine: {} for engine in ENGINES}
    for num_requests in counts:
        options = ("--batch-size", str(num_requests))
        ways = [("llama.cpp", (*options, "--decode-threads", str(each), "--poll", "0")) for each in dict.fromkeys((1, threads))]
        for engine, given in (("maskwright", options), *ways):
            worker = Worker(engine, path, threads, *given)
            best[engine][str(num_requests)] = max(best[engine].get(str(num_requests), 0.0), _best_round(worker, rounds))
            worker.end()
    return best


def _best_round(worker: Worker, rounds: int) -> float:
    """Tokens a second; the first round, which warms up, counts where there is no time for others."""
    begun, found = time.monotonic(), [worker.ask("batch")["batch"]]
    while len(found) <= rounds and time.monotonic() - begun < BATCH_SECONDS:
        found.append(worker.ask("batch")["batch"])
    return max(found)


def best_llama_cpp(path: Path, threads: int) -> Worker:
    """The settings of llama.cpp that decode this file fastest, of two requests each after one that warms it up."""
    best, speed = None, 0.0
    for decode_threads, poll in dict.fromkeys(((1, 0), (threads, 0), (threads, 50))):  # one thread waits for nobody
        worker = Worker("llama.cpp", path, threads, "--decode-threads", str(decode_threads), "--poll", str(poll))
        worker.ask("free")
        found = max(worker.ask("free")["decode"] for _ in range(2))
        slower = worker if best is not None and found <= speed else best
        best, speed = (best, speed) if slower is worker else (worker, found)
        if slower is not None:
            slower.end()
    assert best is not None
    print(f"llama.cpp: {best.options}", flush=True)
    return best


def compared(path: Path, threads: int, rounds: int) -> dict[str, dict[str, float]]:
    """Both engines on one file: each figure the best of the rounds."""
    workers = {"llama.cpp": best_llama_cpp(path, threads), "maskwright": Worker("maskwright", path, threads)}
    best: dict[str, dict[str, float]] = {engine: {} for engine in ENGINES}

    def note(engine: str, name: str, value: float) -> None:
        better = min if name == "cpu_ms" else max
        best[engine][name] = better(best[engine].get(name, value), value)

    for engine in ENGINES:
        workers[engine].ask("free")
        workers[engine].ask("schema")
    for _ in range(rounds):
        for engine in ENGINES:
            for name, value in workers[engine].ask("free").items():
                note(engine, name, value)
            note(engine, "schema", workers[engine].ask("schema")["schema"])
    with neighbour():
        for engine in ENGINES * 2:
            note(engine, "beside", workers[engine].ask("free")["decode"])
    for worker in workers.values():
        worker.end()
    return best


# ---- random weights of Qwen3-0.6B's shape

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, INNER, VOCABULARY = 1024, 28, 16, 8, 128, 3072, 151_936
HALVES = {  # where blocks have float16
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2),
    "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_NL": (0,),
}  # fmt: skip


def write_shape(path: Path, kind: str) -> None:
    import gguf
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    rng, wanted = np.random.default_rng(0), GGMLQuantizationType[kind]
    writer = gguf.GGUFWriter(path, "qwen3")
    writer.add_block_count(LAYERS)
    writer.add_context_length(4096)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD_DIM)
    writer.add_value_length(HEAD_DIM)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    letters = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [chr(256 + number) for number in range(256 - len(letters))]
    tokens = [*map(chr, letters), *others]
    tokens += [f"t{number}" for number in range(VOCABULARY - 1 - len(tokens))] + ["<|endoftext|>"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * (VOCABULARY - 1) + [3])
    writer.add_token_merges(["t 1"])
    writer.add_eos_token_id(VOCABULARY - 1)

    def add(name: str, rows: int, columns: int) -> None:
        block, size = GGML_QUANT_SIZES[wanted]
        writer.add_tensor(name, random_rows(rng, kind, rows, columns // block * size), raw_dtype=wanted)

    def add_norm(name: str, width: int) -> None:
        writer.add_tensor(name, np.ones(width, np.float32))

    add("token_embd.weight", VOCABULARY, HIDDEN)
    add_norm("output_norm.weight", HIDDEN)
    for layer in range(LAYERS):
        prefix = f"blk.{layer}."
        for name, rows, columns in (
            ("attn_q", HEADS * HEAD_DIM, HIDDEN), ("attn_k", KV_HEADS * HEAD_DIM, HIDDEN),
            ("attn_v", KV_HEADS * HEAD_DIM, HIDDEN), ("attn_output", HIDDEN, HEADS * HEAD_DIM),
            ("ffn_gate", INNER, HIDDEN), ("ffn_up", INNER, HIDDEN), ("ffn_down", HIDDEN, INNER),
        ):  # fmt: skip
            add(f"{prefix}{name}.weight", rows, columns)
        for name, width in (("attn_norm", HIDDEN), ("ffn_norm", HIDDEN), ("attn_q_norm", HEAD_DIM), ("attn_k_norm", HEAD_DIM)):
            add_norm(f"{prefix}{name}.weight", width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def random_rows(rng: np.random.Generator, kind: str, rows: int, row_bytes: int) -> NDArray[np.uint8]:
    """Rows of blocks whose numbers are small: their float16 are around 0.001; of MXFP4 the exponents are."""
    if kind in ("BF16", "F16", "F32"):
        numbers = rng.standard_normal((rows, row_bytes // (4 if kind == "F32" else 2)), dtype=np.float32) * np.float32(0.02)
        if kind == "BF16":
            return (numbers.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
        return numbers.astype(np.float16 if kind == "F16" else np.float32).view(np.uint8)
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    size = GGML_QUANT_SIZES[GGMLQuantizationType[kind]][1]
    blocks = rng.integers(0, 256, (rows, row_bytes // size, size), dtype=np.uint8)
    if kind == "MXFP4":
        blocks[..., 0] = 119
    for begin in HALVES.get(kind, ()):
        blocks[..., begin : begin + 2] = np.frombuffer(np.float16(0.0002 if kind.endswith("K") else 0.001).tobytes(), np.uint8)
    return blocks.reshape(rows, row_bytes)


# ---- everything


def files(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Path]]:
    """What each file is, and the file, which is gone when the next one is asked for."""
    from maskwright.engine.gguf.writer import write_quantized

    if options.model is not None:
        yield options.model.name, options.model
        for kind in options.types:
            path = folder / f"{kind}.gguf"
            write_quantized(options.model, path, kind)
            yield f"{options.model.name.split('.')[0]} {kind}", path
            path.unlink()
    for kind in options.shape:
        path = folder / f"{SHAPE}{kind}.gguf"
        write_shape(path, kind)
        yield f"0.6B {kind}", path
        path.unlink()


def environment(threads: int, names: tuple[str, ...] = ("numpy", "torch", "xllamacpp")) -> dict[str, Any]:
    """Versions of packages, processor and its flags."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    of = {line.partition(":")[0].strip(): line.partition(":")[2].strip() for line in lines}
    flags = [flag for flag in of.get("flags", "").split() if flag.startswith(("avx", "fma", "f16c", "amx"))]
    versions = {name: importlib.metadata.version(name) for name in names}
    return {
        "processor": of.get("model name", platform.processor()), "cores": os.cpu_count(), "threads": threads, "flags": flags,
        "load before": os.getloadavg()[0], "python": platform.python_version(), **versions,
    }  # fmt: skip


def show(results: dict[str, dict[str, dict[str, float]]], columns: tuple[str, ...]) -> None:
    table = Table("file", "engine", *columns)
    for name, engines in results.items():
        for engine, found in engines.items():
            table.add_row(name, engine, *(f"{found[column]:.1f}" for column in columns))
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=there, nargs="?")
    parser.add_argument("--types", nargs="*", default=[], help="other blocks of MODEL to measure")
    parser.add_argument("--shape", nargs="*", default=[], choices=["BF16", *HALVES], help="random weights of Qwen3-0.6B's shape")
    parser.add_argument("--threads", type=count, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=count, default=3)
    parser.add_argument("--out", type=result_file, metavar="FILE.json")
    parser.add_argument("--batch", nargs="+", type=count, default=[], help="so many requests at once, in place of one")
    parser.add_argument("--worker", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--decode-threads", type=count, help=argparse.SUPPRESS)
    parser.add_argument("--poll", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--batch-size", type=amount, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker == "maskwright":
        return maskwright_worker(options.model, options.threads, options.batch_size)
    if options.worker == "llama.cpp":
        return llama_cpp_worker(options.model, options.threads, options.decode_threads, options.poll, options.batch_size)
    require_engines(ENGINES)
    results, where = {}, environment(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        for name, path in files(options, Path(folder)):
            if options.batch:
                results[name] = batches(path, options.threads, options.rounds, options.batch)
            else:
                results[name] = compared(path, options.threads, options.rounds)
            print(name, json.dumps(results[name]), flush=True)
    show(results, tuple(map(str, options.batch)) or ("prefill", "decode", "schema", "beside", "cpu_ms"))
    if options.out is not None:
        options.out.write_text(json.dumps({"environment": where, "results": results}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with errors_as_messages():
        main()
