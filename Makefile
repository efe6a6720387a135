# Two commands for a newcomer: `make demo` and `make test`. Both build .venv first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check

# torch goes first and pinned, so that no other requirement pulls a different build.
TORCH  := $(shell sed -n 's/^torch==/torch==/p' constraints.txt)

# Tests start many processes: each would compile the library again where bytecode is not kept.
test suite tiny: export PYTHONDONTWRITEBYTECODE =

MINUTES ?= 15

.PHONY: demo test tiny lint style types suite format bench evidence torture test-lowest proof docs links release-check release-try clean

$(VENV)/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet -c constraints.txt "$(TORCH)"
	$(PIP) install --quiet -c constraints.txt -e .
	@touch $@

$(VENV)/.test: $(VENV)/.core
	$(PIP) install --quiet -c constraints.txt -e '.[test]'
	@touch $@

$(VENV)/.bench: $(VENV)/.test
	$(PIP) install --quiet -c constraints.txt -e '.[bench]'
	@touch $@

demo: $(VENV)/.core
	$(BIN)/castalia demo

lint: style types

style: $(VENV)/.test
	$(BIN)/ruff check src tests tools benchmarks evidence
	$(BIN)/ruff format --check src tests tools benchmarks evidence

types: $(VENV)/.test
	$(BIN)/mypy

# The first run compiles every test, which two workers would do twice. A third worker makes it no shorter (measured).
suite: $(VENV)/.test
	@$(BIN)/python -m pytest --collect-only -qq > $(VENV)/.collected || { cat $(VENV)/.collected; exit 1; }
	$(BIN)/python -m pytest -n 2 --dist worksteal

# mypy has one core for a minute: the tests need not wait for it.
test: style
	$(MAKE) --jobs 2 types suite

# A sample of the suite in an environment of its own, with the oldest versions that are admitted.
LOWEST := $(VENV)-lowest
SAMPLE := tests/utils tests/data/test_table_files.py tests/data/test_data_reader.py tests/base/test_store.py \
	tests/train/test_checkpoint.py tests/train/test_run_folder.py tests/cli/test_fit_options.py

$(LOWEST)/.test: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip --disable-pip-version-check install --quiet -c constraints-lowest.txt torch
	$(LOWEST)/bin/python -m pip --disable-pip-version-check install --quiet -c constraints-lowest.txt \
		-e . pytest hypothesis pandas openpyxl
	@touch $@

test-lowest: $(LOWEST)/.test
	$(LOWEST)/bin/python -m pytest $(SAMPLE)
	$(LOWEST)/bin/python -m pytest tests/contract -k "MLPClassifier or LinearSVM or KMeans"

tiny: $(VENV)/.test
	$(BIN)/python -m pytest -m tiny

format: $(VENV)/.test
	$(BIN)/ruff check --fix src tests tools benchmarks evidence
	$(BIN)/ruff format src tests tools benchmarks evidence

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

evidence: $(VENV)/.core
	$(BIN)/python -m evidence

torture: $(VENV)/.test
	$(BIN)/python -m evidence.torture --minutes $(MINUTES)

proof: $(VENV)/.test
	$(BIN)/python tools/mutants.py

$(VENV)/.docs: $(VENV)/.test
	$(PIP) install --quiet -c constraints.txt -e '.[docs]'
	@touch $@

# A link that leads nowhere is an error.
docs: $(VENV)/.docs
	$(BIN)/python tools/doc_pages.py
	$(BIN)/python -m sphinx -b html -q -W --keep-going build/docs site

# Links to other sites, asked one by one; needs a network, so a nightly job does it.
links: $(VENV)/.docs
	$(BIN)/python tools/doc_pages.py
	$(BIN)/python -m sphinx -b linkcheck -q -D plot_gallery=0 build/docs build/links

# Wheel and sdist, built, checked, and tried in empty environments: newest and oldest dependencies, and extras alone.
RELEASE := $(VENV)-release
CHECKED ?= constraints.txt
EMPTY   := $(RELEASE)/bin/python -m pip --disable-pip-version-check install --quiet
ALONE   := castalia.serve:serve castalia.studio:studio castalia.export:export castalia.tune:tune

release-check:
	rm -rf dist
	$(PYTHON) -m venv --clear $(RELEASE)
	$(EMPTY) build twine
	$(RELEASE)/bin/python -m build --outdir dist .
	$(RELEASE)/bin/python -m twine check --strict dist/*
	$(MAKE) release-try CHECKED=constraints.txt
	$(MAKE) release-try CHECKED=constraints-lowest.txt

release-try:
	$(PYTHON) -m venv --clear $(RELEASE)
	$(EMPTY) -c $(CHECKED) torch
	$(EMPTY) -c $(CHECKED) "$$(ls dist/*.whl)"
	cd $(RELEASE) && bin/castalia --version && bin/castalia demo
	for each in $(ALONE); do \
		$(EMPTY) -c $(CHECKED) "$$(ls dist/*.whl)[$${each#*:}]" && \
		$(RELEASE)/bin/python -c "import $${each%:*}" || exit 1; done
	$(EMPTY) -c $(CHECKED) pytest hypothesis pandas openpyxl
	$(RELEASE)/bin/python -m pytest $(SAMPLE)

clean:
	rm -rf $(VENV) $(LOWEST) $(RELEASE) build dist site .pytest_cache .mypy_cache .ruff_cache
