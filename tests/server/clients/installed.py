"""Client libraries that tests use when they are installed: the extra `clients`."""

from __future__ import annotations

import os
import warnings
from typing import Any

import pytest

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else importing litellm asks the network for prices
os.environ["LANGSMITH_TRACING"] = "false"
os.environ["DO_NOT_TRACK"] = "1"

QUIET = pytest.mark.filterwarnings("ignore")  # what other packages warn of in themselves is not ours to mend


def client_library(name: str) -> Any:
    """The module, or the tests of this file are skipped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f'needs {name}: pip install "maskwright[clients]"')
