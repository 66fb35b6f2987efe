PYTHON ?= python

# Scripts of the environment that PYTHON is in.
BIN = $(shell $(PYTHON) -c "import os, sys; print(os.path.dirname(sys.executable))")

NUMERICAL = $(wildcard tests/input tests/moments tests/solvers tests/estimators)

# Kernels of OpenBLAS, each of which rounds in its own way; `make test` has used this machine's own.
OWN_KERNEL = $(shell $(PYTHON) -c "import numpy, scipy.linalg, threadpoolctl as t; \
  print(*{library.get('architecture') for library in t.threadpool_info()})")
KERNELS = $(filter-out $(OWN_KERNEL), Haswell Prescott)

.PHONY: install lint types test test-slow stress test-rounding test-bare test-oldest \
  coverage doctest pages docs bench reproduce dist

install:
	$(PYTHON) -m pip install -e ".[test,lint,docs]"

lint:
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(BIN)/lint-imports

types:
	$(PYTHON) -m mypy

test:
	$(PYTHON) -m pytest -n 2

test-slow:
	$(PYTHON) -m pytest -n 2 -m slow

# Hostile problems against oracles. FAIRPCA_STRESS_SEED says which, FAIRPCA_STRESS_PROBLEMS how many.
stress:
	$(PYTHON) -m pytest -n 2 -q -m stress tests/stress

# As other processors compute. Left out: what does not depend on rounding.
test-rounding:
	set -e; for kernel in $(KERNELS); do \
	  OPENBLAS_CORETYPE=$$kernel $(PYTHON) -m pytest -n 2 -q $(NUMERICAL) \
	    --ignore=tests/estimators/test_refusals.py --ignore=tests/estimators/test_groups_passed.py \
	    -k "not common_checks and not spea2 and not refused and not interrupt"; done

test-bare:
	$(PYTHON) -m pytest tests/test_bare.py

test-oldest:
	$(PYTHON) -m pytest -n 2 $(NUMERICAL) \
	  tests/metrics/test_reconstruction.py tests/test_path.py tests/cli/test_answers.py

# In random order and with more workers than cores: no test relies on what another has prepared.
coverage:
	$(PYTHON) -m pytest -n 4 -m "not stress" --random-order-bucket=global \
	  --random-order-seed=$$(date +%s) --cov --cov-report=term-missing:skip-covered \
	  --cov-report=json:coverage.json
	$(PYTHON) .ci/every_module_is_reached.py coverage.json

doctest:
	$(PYTHON) -m pytest --doctest-modules src reproduction -p no:xdist --ignore=src/fairpca/_moments/spark.py

bench:
	$(PYTHON) -m benchmarks

reproduce:
	$(PYTHON) -m reproduction

# The tables and plots of the pages, from the stored measurements and the options of the commands.
pages:
	$(PYTHON) docs/make_pages.py

docs:
	$(PYTHON) -m sphinx -W --keep-going -b html docs docs/_build/html

dist:
	rm -rf dist
	$(PYTHON) -m build
	$(PYTHON) -m twine check --strict dist/*

docs/_static/report.png: src/fairpca/report/*
	$(PYTHON) docs/make_report_picture.py
