"""Average the weights of Hugging Face folders: `python training/average.py runs/long:0.8 runs/wide:0.2 --out runs/average`.

The rest of the folder is that of the first one. ("Model soups", Wortsman et al., 2022.)
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor


def average(shares: dict[Path, float]) -> dict[str, Tensor]:
    """Each matrix of folders of one architecture, as much of each as its share says; summed in float64."""
    weights = {folder: load_file(folder / "model.safetensors") for folder in shares}
    if len({tuple((name, tensor.shape) for name, tensor in sorted(each.items())) for each in weights.values()}) > 1:
        raise SystemExit(f"these folders do not have the same matrices: {', '.join(map(str, shares))}")
    names = next(iter(weights.values()))
    sums = {name: torch.stack([share * weights[folder][name].double() for folder, share in shares.items()]).sum(0) for name in names}
    return {name: total.to(names[name].dtype).contiguous() for name, total in sums.items()}


def folder_and_share(text: str) -> tuple[Path, float]:
    folder, _, share = text.rpartition(":")
    if not folder:
        raise argparse.ArgumentTypeError(f"{text!r} is not FOLDER:SHARE")
    return Path(folder), float(share)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=folder_and_share, nargs="+", metavar="FOLDER:SHARE")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    shutil.copytree(arguments.folders[0][0], arguments.out)
    save_file(average(dict(arguments.folders)), arguments.out / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main()
