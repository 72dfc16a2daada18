# For a newcomer: `make demo`, then `make test`. Needs Python 3.11 or newer and make, nothing else.
# Everything is installed into .venv; steps that are done are not repeated.
#
#   make demo     create the environment, then fill a schema with the model that ships in the package
#   make test     run all tests
#   make check    ruff, mypy on the package as installed, and the API reference
#   make docs     the API reference, in build/reference
#   make bench    time decode steps; with SCHEMAS=<MaskBench file> TOKENIZER=<folder> also masks, against other engines
#   make clean    remove the environment and everything that was built
#
# On Linux, PyPI's torch brings the CUDA libraries (about 3 GB). On a machine without a GPU the CPU build is enough:
# take its index from pytorch.org ("Get Started", compute platform CPU) and run `make demo TORCH_INDEX=<address>`.

VENV    ?= .venv
PYTHON  ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
             $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
WORKERS ?= auto
TORCH_INDEX ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
SAY := @printf '\n==> %s\n'

.PHONY: demo test check docs bench clean
.DELETE_ON_ERROR:

demo: $(VENV)/.warm
	$(SAY) "reading a sentence into a Person with the embedded model"
	@$(BIN)/maskwright generate --schema examples/extract.py:Person --show-mask --timing \
	  "Ada Lovelace, 36, lives in London and works as a mathematician."

test: $(VENV)/.test $(VENV)/.warm
	$(SAY) "testing on all cores"
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --maxprocesses=8

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
	$(PIP) install -c .ci/pins.txt -e .
	@touch $@

$(VENV)/.warm: $(VENV)/.package
	$(SAY) "compiling the loops that compute masks, once for this machine"
	@$(BIN)/python -c 'import maskwright.constraints as c; print(f"done in {c.warm_up(print):.0f} s")'
	@touch $@

$(VENV)/.test: $(VENV)/.package
	$(SAY) "installing the tools for testing"
	$(PIP) install -c .ci/pins.txt -e '.[test,clients]'
	$(PIP) install -c .ci/pins.txt --no-deps instructor
	@touch $@

$(VENV)/.bench: $(VENV)/.package
	$(SAY) "installing the engines to compare with"
	$(PIP) install -c .ci/pins.txt -e '.[bench]'
	@touch $@
