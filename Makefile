# Every target sets up what it needs: a machine with Python 3.11+ and make is enough.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test coverage install lint bench slow oracle core catalogue clean

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[lab,view]'
	touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(PIP) --editable '.[lab,view,dask,slurm,dev]'
	touch $@

# The Einstellung experiment in small, shown as a table and a figure.
demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py

# axe-core judges the report's accessibility; without npm that one test is passed over.
AXE := $(VENV)/node_modules/axe-core/axe.min.js
$(AXE): | $(BIN)/python
	-npm install --prefix $(VENV) --no-save --no-audit --no-fund --ignore-scripts --silent axe-core@4.14.0

# The tests. Those of the report's page need Chromium, and are passed over without.
# With compiled files, whatever the environment says: else every worker rewrites every assertion at every start.
# The kernels of geometry are compiled beside the tests if they have changed: else every worker does it itself.
# What tests write goes into shared memory where there are 4 GB of it: most of it is brought to the disk and deleted again.
MEMORY := $(shell [ "$$(df -k --output=avail /dev/shm 2> /dev/null | tail -1)" -gt 4000000 ] 2> /dev/null && echo /dev/shm)
ENVIRONMENT := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 PYTEST_DEBUG_TEMPROOT=$(MEMORY)
PYTEST := $(ENVIRONMENT) $(BIN)/python tests/compile_kernels.py & WATERJAR_AXE=$(abspath $(AXE)) $(ENVIRONMENT) $(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not oracle"
test: $(VENV)/.dev $(AXE)
	$(PYTEST)

# The same, half as long again, with coverage of src/: 95 % or more.
coverage: $(VENV)/.dev $(AXE)
	$(PYTEST) --cov --cov-report=term

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Everything, the heavy extras included.
install: $(VENV)/.dev
	$(PIP) --editable '.[all,oracle]'

# One ratio a line; peers that are not installed are passed over and said so.
bench: $(VENV)/.dev
	status=0; for file in bench/*.py; do echo "== $$file"; OMP_NUM_THREADS=1 $(BIN)/python $$file || status=1; done; exit $$status

# docs/metrics.md from the registry, and the signatures of figures for editors.
catalogue: $(VENV)/.dev
	$(BIN)/python -m waterjar.diagnose.catalogue docs/metrics.md
	$(BIN)/python -m waterjar.front.stubs src/waterjar/front/plot.pyi

# Kill tests and whole experiments: minutes. With one thread of BLAS, as workers have: the last bits hang on how many.
slow: $(VENV)/.dev
	HYPOTHESIS_PROFILE=explore $(ENVIRONMENT) $(BIN)/python -m pytest -n auto --dist worksteal -m slow

# Against foreign reference implementations. torchattacks asks for a requests of 2021, which nothing else here can have:
# it comes without what it asks for.
oracle: $(VENV)/.dev
	$(PIP) --editable '.[oracle]'
	$(PIP) --no-deps torchattacks==3.5.1
	HYPOTHESIS_PROFILE=explore $(ENVIRONMENT) $(BIN)/python -m pytest -m oracle

# The core alone, in an environment of its own: it must install and work without torch and matplotlib.
core: | $(VENV)-core/bin/python
	$(VENV)-core/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable . pytest hypothesis
	$(VENV)-core/bin/python -c 'import importlib.util as u, sys; sys.exit("torch is in the core environment") if u.find_spec("torch") else None'
	$(VENV)-core/bin/python -m pytest tests/diagnose/geometry/test_measure.py tests/diagnose/geometry/test_capacity.py tests/cli tests/run/test_recorder.py tests/run/test_plain_xarray.py tests/stats/test_table.py tests/diagnose/test_foundation.py -m "not torch and not slow and not oracle" -k "not analyses" -q

$(VENV)-core/bin/python:
	$(PYTHON) -m venv $(VENV)-core

clean:
	rm -rf $(VENV) $(VENV)-core .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage* demo-out
