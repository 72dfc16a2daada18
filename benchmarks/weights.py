"""What a model costs and loses in each type of blocks: one GGUF file in many, each in a process of its own, beside llama.cpp.

    python benchmarks/weights.py MODEL.gguf [--types F16 Q8_0 Q4_1 Q4_0] [--threads 1] [--out FILE.json]
    python benchmarks/weights.py FOLDER --types as-is FP8 INT8 INT4 W8A8 GPTQ AWQ [--products float32]

For each type: seconds until it is loaded; resident memory that loading and 64 steps add, KV cache apart, as a multiple of the
file; tokens a second of one sequence, of this engine and of llama.cpp (the wheel xllamacpp, if it is there) on the same file; those
of a prompt of 512 tokens; and the mean negative log probability of a text of this repository, less that of the first type. Types
that no library writes (K-quants) are measured by naming such a file and `--types as-is`; llama.cpp does not read folders. Products
are those that the engine chooses, or `--products`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from result_files import count, errors_as_messages, result_file, there
from rich.console import Console
from rich.table import Table

TEXT = Path(__file__).parents[1] / "docs" / "architecture.md"
NUM_STEPS, NUM_TEXT = 64, 512  # tokens


def resident() -> int:
    """Bytes of this process that are in memory, mapped files included."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def measured(path: Path, threads: int, products: str) -> dict[str, float]:
    """What this engine makes of the file, by the products that it chooses, or those that are asked for."""
    import torch

    from maskwright.engine.config import COMPILED, EngineConfig, resolve
    from maskwright.engine.models.architecture import DTYPES
    from maskwright.engine.models.decoder import ForwardBatch
    from maskwright.engine.models.model import load_model
    from maskwright.engine.models.spec import read_spec
    from maskwright.engine.models.tokenizer import load_tokenizer
    from maskwright.kernels.quantized import BLOCK_TYPES, Packed, dequantize, scaled
    from maskwright.kernels.quantized.codes import CODE_TYPES, Scaled

    torch.set_num_threads(threads)
    tokens = load_tokenizer(path, read_spec(path)).encode(TEXT.read_text(encoding="utf-8"))[:NUM_TEXT]
    (torch.randn(64, 64) @ torch.randn(64, 64)).sum().item()  # memory of PyTorch's and Numba's own code comes first
    for kind in BLOCK_TYPES.values():
        dequantize(Packed(kind, torch.zeros(1, kind.num_bytes, dtype=torch.uint8)))
    for code in CODE_TYPES.values():
        matrix = Scaled(code, torch.zeros(1, code.row_bytes(8), dtype=torch.uint8), torch.ones(1, 1), 8, (1, 8))
        scaled.dequantize(matrix)
    before, start = resident(), time.perf_counter()
    spec = read_spec(path)
    config = resolve(EngineConfig(model=path, device="cpu", products=products), spec)
    is_compiled = config.products in COMPILED
    model = load_model(path, spec, DTYPES[config.dtype], torch.device("cpu"), NUM_TEXT, is_compiled=is_compiled)
    load_seconds = time.perf_counter() - start
    cache = model.allocate_cache(NUM_TEXT // 16, 16)

    def forward(chunk: tuple[int, ...], past: int, rows: list[int]) -> Any:
        plan = model.plan([(past, len(chunk), list(range(NUM_TEXT // 16)))], cache)
        positions = torch.arange(past, past + len(chunk))
        return model.forward(ForwardBatch(torch.tensor(chunk), positions, torch.tensor(rows), plan), cache)

    forward(tokens[:1], 0, [0])
    times = []
    for past in range(1, NUM_STEPS):
        start = time.process_time()
        forward(tokens[past : past + 1], past, [0])
        times.append((time.process_time() - start) / threads)
    grown = resident() - before - model.block_bytes(16) * (NUM_STEPS // 16)
    prompt_times = []
    for _ in range(3):
        start = time.process_time()
        forward(tokens, 0, [len(tokens) - 1])
        prompt_times.append((time.process_time() - start) / threads)
    logits = forward(tokens, 0, list(range(len(tokens))))
    loss = torch.nn.functional.cross_entropy(logits[:-1].float(), torch.tensor(tokens[1:])).item()
    size = sum(file.stat().st_size for file in path.glob("*.safetensors")) if path.is_dir() else path.stat().st_size
    rate = 1 / sorted(times)[len(times) // 4]  # the quieter quarter of the steps
    found = {"load_s": load_seconds, "file_mb": size / 1e6, "resident": grown / size, "tokens_s": rate, "loss": loss}
    return {**found, "prompt_tokens_s": len(tokens) / min(prompt_times)}


def llama_cpp_rate(path: Path, threads: int) -> float:
    """Tokens a second of llama.cpp, its best of three."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx, params.n_parallel = str(path), 512, 1
    params.cpuparams.n_threads, params.verbosity = threads, -1
    server, best = xllamacpp.Server(params), 0.0
    for _ in range(3):
        answer = server.handle_completions({"prompt": "The sea is", "max_tokens": NUM_STEPS, "temperature": 0, "ignore_eos": True})
        answer = json.loads(answer) if isinstance(answer, str) else answer
        best = max(best, answer["timings"]["predicted_per_second"])
    return best


def in_process(path: Path, threads: int, what: str, products: str = "auto") -> Any:
    """`what` of the file, measured in a fresh process."""
    command = [sys.executable, __file__, str(path), "--threads", str(threads), "--measure", what, "--products", products]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=there)
    parser.add_argument("--types", nargs="+", default=["F16", "Q8_0", "Q5_1", "Q4_1", "Q4_0"])
    parser.add_argument("--threads", type=count, default=1)
    parser.add_argument("--products", default="auto", help="of this engine: see docs/weights.md")
    parser.add_argument("--out", type=result_file, metavar="FILE.json")
    parser.add_argument("--measure", choices=["engine", "llama.cpp"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure == "engine":
        return print(json.dumps(measured(options.model, options.threads, options.products)))
    if options.measure:
        return print(json.dumps(llama_cpp_rate(options.model, options.threads)))
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.types:
            with errors_as_messages():
                results[kind] = compared(options.model, kind, Path(folder), options.threads, options.products)
    show(results)
    if options.out is not None:
        content = {"model": options.model.name, "threads": options.threads, "types": results}
        options.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def compared(model: Path, kind: str, folder: Path, threads: int, products: str) -> dict[str, float]:
    from quantised_layouts import LAYOUTS, write_layout

    from maskwright.engine.conversion.quantized_folder import write_quantized_folder
    from maskwright.engine.gguf.writer import write_quantized

    path = model if kind == "as-is" else folder / (kind if model.is_dir() else f"{kind}.gguf")
    if kind in LAYOUTS:
        write_layout(model, path, kind)
    elif path != model:
        (write_quantized_folder if model.is_dir() else write_quantized)(model, path, kind)
    found: dict[str, float] = in_process(path, threads, "engine", products)
    if find_spec("xllamacpp") and not model.is_dir():
        found["llama_cpp_tokens_s"] = in_process(path, threads, "llama.cpp")
    return found


def show(results: dict[str, dict[str, float]]) -> None:
    table = Table("type", "file MB", "load s", "resident / file", "tokens/s", "llama.cpp", "prompt", "loss", "worse by")
    first = next(iter(results.values()))["loss"]
    for kind, found in results.items():
        theirs = found.get("llama_cpp_tokens_s", math.nan)
        costs = (f"{found['file_mb']:.0f}", f"{found['load_s']:.2f}", f"{found['resident']:.2f}")
        rates = (f"{found['tokens_s']:.1f}", f"{theirs:.1f}", f"{found['prompt_tokens_s']:.0f}")
        table.add_row(kind, *costs, *rates, f"{found['loss']:.4f}", f"{found['loss'] - first:+.4f}")
    Console().print(table)


if __name__ == "__main__":
    with errors_as_messages():
        main()
