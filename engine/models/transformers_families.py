"""Which of transformers' architectures run on a paged cache through its attention interface, and why others do not.

Measured with transformers 5.23: `tests/engine/models/test_transformers_models.py` and `test_zoo_hybrids.py` run every name of
VERIFIED and HYBRID, in packed batches and in chunks, against the model's own attention and states. A model type that is in no
table is refused until somebody has tried it.
"""

from __future__ import annotations

from collections.abc import Mapping

VERIFIED: frozenset[str] = frozenset({
    "afmoe", "apertus", "arcee", "aria_text", "axk1", "beam", "biogpt", "bitnet", "cohere2_moe", "cohere_compass_text",
    "cwm", "dbrx", "deepseek_v2", "dots1", "ernie4_5", "ernie4_5_moe", "exaone_moe", "flex_olmo", "flint",
    "gemma", "gemma3n_text", "gemma4_text", "gemma4_unified_text", "glm", "glm4", "glm4_moe", "glm4_moe_lite",
    "gpt-sw3", "gpt2", "gpt_bigcode", "gpt_neox", "gpt_oss", "granite", "granite_swa", "granitemoe", "granitemoe_swa",
    "granitemoeshared", "helium", "hunyuan_v1_dense", "hunyuan_v1_moe", "hy_v3", "hyperclovax", "internlm3",
    "iquestcoder", "jais2", "jetmoe", "kolibri1", "laguna", "longcat_flash", "mellum", "mimo_v2_flash", "minicpm3",
    "minimax_m2", "ministral", "ministral3", "modernbert-decoder", "nanochat", "nemotron", "olmo",
    "olmoe", "opt", "persimmon", "phi", "phimoe", "qwen2_moe", "seed_oss", "smollm3", "solar_open", "stablelm",
    "vaultgemma", "youtu",
})  # fmt: skip
HYBRID: frozenset[str] = frozenset({  # layers with a state, beside attention or alone: `transformers_hybrids.py`
    "bamba", "falcon_h1", "falcon_mamba", "granitemoehybrid", "jamba", "kimi_linear", "lfm2", "lfm2_moe", "lfm3", "mamba",
    "nemotron_h", "olmo_hybrid", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_next",
})  # fmt: skip
EMPTY_SCANS: frozenset[str] = frozenset({"falcon_mamba", "jamba", "mamba"})  # ignore the state that several tokens go on from

_RECURRENT = "it keeps a recurrent state past transformers' cache interface, or its mixers ask for more than hidden states"
_SPARSE = "its sparse attention chooses keys by an index of its own, which the paged cache does not hold"
_ENCODER = "it is an encoder, or the decoder of an encoder-decoder, not a decoder-only language model"
_OWN_ATTENTION = "it computes attention itself (ALiBi, relative positions, patches, a mask of its own), past the interface"
_MANY_CALLS = "it attends more than once per layer, or in layers that share one attention, and the cache has one place per layer"
_MASKED = "its attention depends on a mask that the paged cache does not make"
_NOT_ONLY_TEXT = "it is for images or sound too; only text models run here"
_ASSISTANT = "it drafts for one other model, from whose keys and values it begins"

_REFUSED: Mapping[str, str] = {
    _RECURRENT: "bailing_hybrid minimax recurrent_gemma rwkv xlstm zaya",
    _SPARSE: "axk2 deepseek_v32 deepseek_v4 dots3_note_text glm_moe_dsa hy_v4 minimax_m3_vl_text qwen4_exp_text",
    _ENCODER: """bart bert bert-generation big_bird bigbird_pegasus blenderbot blenderbot-small camembert data2vec-text electra
        ernie marian mbart megatron-bert mvp pegasus plbart prophetnet rembert roberta roberta-prelayernorm roc_bert
        roformer t5 trocr whisper xlm-roberta xlm-roberta-xl xlm xmod""",
    _OWN_ATTENTION: """bloom blt codegen cpmant ctrl falcon gpt_neo gpt_neox_japanese gptj inkling_text inkling2_text mpt
        openai-gpt reformer xglm xlnet""",
    _MANY_CALLS: "diffllama hrm_text zamba zamba2",
    _MASKED: "doge llama4",
    _NOT_ONLY_TEXT: """dots3_note emu3 fuyu gemma3n gemma4 gemma4_unified git got_ocr2 mllama moshi moss_transcribe_diarize
        musicgen musicgen_melody phi4_multimodal qwen3_5 qwen3_5_moe qwen4_exp""",
    _ASSISTANT: "gemma4_assistant gemma4_unified_assistant",
}
REFUSED: Mapping[str, str] = {name: reason for reason, names in _REFUSED.items() for name in names.split()}
