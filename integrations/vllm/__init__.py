"""Maskwright as a structured-output backend of vLLM: `--structured-outputs-config.backend maskwright`.

    from maskwright.integrations import vllm as maskwright_vllm
    maskwright_vllm.register()                                   # only needed before LLM(...); `vllm serve` finds it by itself
    LLM(model, structured_outputs_config={"backend": "maskwright"})

backend        the two classes that vLLM calls
registration   how it learns of them
device         for Model Runner V2: a logits processor whose states advance on the device
"""

from .backend import MaskwrightBackend, MaskwrightGrammar
from .registration import NAME, TESTED, plugin, register

__all__ = ["NAME", "TESTED", "MaskwrightBackend", "MaskwrightGrammar", "plugin", "register"]
