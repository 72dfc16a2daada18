"""What the kernels look like as machine code for sm_90: registers, spills, shared memory, instructions. Needs no GPU.

    python benchmarks/gpu/machine_code.py [--out FILE]

`instructions` are those of all paths together; `per_element` divides them, or those of the longest loop, by the logits (or tokens)
that a thread handles, so it bounds every path from above.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

import triton

RESULTS = Path(__file__).resolve().parents[1] / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/machine-code-triton-VERSION-DATE.json")
    options = parser.parse_args()
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "maskwright.kernels.aot", "--json"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    today = datetime.date.today().isoformat()
    out = options.out or RESULTS / f"machine-code-triton-{triton.__version__}-{today}.json"
    kernels = [json.loads(line) for line in done.stdout.splitlines()]
    head = {"date": today, "target": "sm_90", "triton": triton.__version__}
    lines = ",\n".join("  " + json.dumps(kernel) for kernel in kernels)
    out.write_text(json.dumps(head)[:-1] + ', "kernels": [\n' + lines + "\n]}\n")
    print(f"kept in {out}")


if __name__ == "__main__":
    main()
