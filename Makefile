# dueline's house. A fresh machine needs python3 (3.11 or newer) and make; all else comes into .venv from requirements.lock.

PYTHON      ?= python3
PYTEST_ARGS ?=
DEMO_ARGS   ?=
BENCH_ARGS  ?=

VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
LOCKER := .make/lock
# The one tool outside the lock: it makes the lock.
UV     := uv==0.13.9

.DEFAULT_GOAL := help
.PHONY: help install lint check test demo faults simulate bench lock wheel clean distclean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
	@echo '  variables: PYTHON (default python3), PYTEST_ARGS, DEMO_ARGS, BENCH_ARGS, FAULTS_ARGS'

install: $(STAMP) ## bring .venv up to date with requirements.lock

lint: $(STAMP) ## ruff, mypy --strict and the import contracts
	@echo '== ruff'
	@$(BIN)/ruff check .
	@echo '== mypy'
	@$(BIN)/mypy $(foreach package,dueline tests bench examples proof,$(if $(wildcard $(package)/*.py $(package)/*/*.py),-p $(package)))
	@echo '== import contracts'
	@$(BIN)/lint-imports --no-logo

check: lint ## the fast part: lint and the tests that need no broker
	@echo '== tests that need no broker'
	@$(BIN)/python -m pytest $(wildcard tests/unit tests/property tests/simulation) $(PYTEST_ARGS)

test: lint ## all of it: lint and every test, on an embedded Kafka broker
	@echo '== all tests'
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

demo: $(STAMP) ## the story of the daily menu: kills, freezes and take-overs on real processes
	@$(BIN)/python -m examples.demo $(DEMO_ARGS)

faults: $(STAMP) ## N real faults on real processes, judged: make faults N=200 [SEED=..] [NODES=3] [KINDS=a,b] [FAULTS_ARGS=..]
	@$(BIN)/python -m proof.faults --faults $(or $(N),100) --nodes $(or $(NODES),1) $(if $(SEED),--seed $(SEED)) $(if $(KINDS),--kinds $(KINDS)) $(FAULTS_ARGS)

simulate: $(STAMP) ## simulated hours under faults: make simulate SEEDS=1..100 [HOURS=1] [PROFILE=calm|rough|brutal] [LOAD=1]
	@$(BIN)/python -m proof.simulation --seeds $(or $(SEEDS),1..20) --hours $(or $(HOURS),1) --profile $(or $(PROFILE),rough) --load $(or $(LOAD),1) $(if $(SHRINK),--shrink $(SHRINK))

bench: $(STAMP) ## the measurements, each beside a raw Kafka loop
	@$(BIN)/python -m bench $(BENCH_ARGS)

wheel: $(STAMP) ## dist/: the source archive and the wheel
	@$(BIN)/python -m build --no-isolation --outdir dist

lock: $(LOCKER)/bin/uv ## remake requirements.lock from pyproject.toml (UPGRADE=1 takes the newest versions)
	@$(LOCKER)/bin/uv pip compile pyproject.toml --extra broker --group dev --output-file requirements.lock \
		--universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
		--custom-compile-command 'make lock' --quiet $(if $(UPGRADE),--upgrade)
	@echo 'requirements.lock is made; look at its diff, then run make test'

clean: ## remove what was built and cached
	@rm -rf build dist *.egg-info .make .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean ## clean, and remove .venv too
	@rm -rf $(VENV)

# --- steps ------------------------------------------------------------------------------------------------------------

# A function of the shell, so that .venv and the lock's own tool are made the same way: $(call make_venv,FOLDER).
# A folder whose pip answers is kept; one that a failed or moved Python left behind is made anew.
define make_venv
command -v "$(PYTHON)" >/dev/null 2>&1 || { \
	echo "make: no '$(PYTHON)' here. Install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }; \
"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	echo "make: '$(PYTHON)' is `"$(PYTHON)" -V 2>&1`; dueline needs 3.11 or newer. Name one: make PYTHON=python3.12" >&2; exit 1; }; \
"$(1)/bin/python" -m pip --version >/dev/null 2>&1 || { \
	echo "== making $(1) with `"$(PYTHON)" -V 2>&1`"; \
	"$(PYTHON)" -m venv --clear "$(1)" || { rm -rf "$(1)"; \
		echo "make: '$(PYTHON)' can't make a virtual environment (see above). On Debian and Ubuntu: apt-get install python3-venv" >&2; \
		exit 1; }; }
endef

$(STAMP): requirements.lock pyproject.toml
	@$(call make_venv,$(VENV))
	@echo '== installing requirements.lock (the first time takes a minute or two)'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements.lock || { \
		echo 'make: pip could not install requirements.lock (see above). It needs a package index: check the network, PIP_INDEX_URL and PIP_CERT.' >&2; \
		exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

$(LOCKER)/bin/uv:
	@$(call make_venv,$(LOCKER))
	@$(LOCKER)/bin/python -m pip install --quiet --disable-pip-version-check '$(UV)'
