"""Which of transformers' architectures run on a paged cache through its attention interface, and why others do not.

Measured with transformers 5.23: `tests/engine/test_zoo.py` runs every name of VERIFIED, in packed batches and in chunks,
against the model's own attention. A model type that is in neither table is refused until somebody has tried it.
"""

from __future__ import annotations

from collections.abc import Mapping

VERIFIED: frozenset[str] = frozenset({
    "afmoe", "apertus", "arcee", "aria_text", "beam", "biogpt", "bitnet", "cohere2_moe", "cwm", "deepseek_v2", "dots1",
    "ernie4_5", "ernie4_5_moe", "exaone4", "exaone_moe", "flex_olmo", "flint", "gemma", "gemma4_text",
    "gemma4_unified_text", "glm", "glm4", "glm4_moe", "glm4_moe_lite", "gpt-sw3", "gpt2", "gpt_bigcode", "gpt_neox",
    "gpt_oss", "granite", "granite_swa", "granitemoe", "granitemoe_swa", "granitemoeshared", "helium", "hunyuan_v1_dense",
    "hunyuan_v1_moe", "hy_v3", "hyperclovax", "internlm3", "iquestcoder", "jais2", "jetmoe", "kolibri1", "laguna",
    "longcat_flash", "mellum", "mimo_v2_flash", "minicpm3", "minimax_m2", "ministral", "ministral3", "nanochat",
    "nemotron", "olmo", "olmo2", "olmo3", "olmoe", "opt", "persimmon", "phi", "phimoe", "qwen2_moe", "seed_oss",
    "smollm3", "solar_open", "stablelm", "vaultgemma", "youtu",
})  # fmt: skip

_RECURRENT = "it keeps a recurrent or convolutional state beside the keys and values, for which there is no pool"
_SPARSE = "its sparse attention chooses keys by an index of its own, which the paged cache does not hold"
_ENCODER = "it is an encoder, or the decoder of an encoder-decoder, not a decoder-only language model"
_OWN_ATTENTION = "it computes attention itself (ALiBi, relative positions or a mask of its own), past the interface"
_MANY_CALLS = "it attends more than once per layer, and the cache has one place per layer"
_MASKED = "its attention depends on a mask that the paged cache does not make"

_REFUSED: Mapping[str, str] = {
    _RECURRENT: """bailing_hybrid bamba falcon_h1 falcon_mamba granitemoehybrid jamba kimi_linear lfm2 lfm2_moe lfm3 mamba
        minimax nemotron_h olmo_hybrid qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text qwen3_next recurrent_gemma rwkv
        xlstm zamba zamba2""",
    _SPARSE: "deepseek_v32 deepseek_v4 glm_moe_dsa hy_v4 minimax_m3_vl_text",
    _ENCODER: """bart bert bert-generation big_bird bigbird_pegasus blenderbot blenderbot-small camembert data2vec-text electra
        ernie marian mbart megatron-bert mvp pegasus plbart prophetnet rembert roberta roberta-prelayernorm roc_bert
        roformer t5 trocr whisper xlm-roberta xlm-roberta-xl xlm xmod""",
    _OWN_ATTENTION: """bloom codegen cpmant ctrl falcon gpt_neo gpt_neox_japanese gptj inkling_text inkling2_text mpt
        openai-gpt reformer xglm xlnet""",
    _MANY_CALLS: "diffllama hrm_text",
    _MASKED: "doge llama4",
}
REFUSED: Mapping[str, str] = {name: reason for reason, names in _REFUSED.items() for name in names.split()}
