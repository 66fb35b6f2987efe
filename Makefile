PYTHON ?= python

.PHONY: install lint types test doctest docs bench reproduce dist

install:
	$(PYTHON) -m pip install -e ".[test,lint,docs]"

lint:
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types:
	$(PYTHON) -m mypy

test:
	$(PYTHON) -m pytest -n 2

doctest:
	$(PYTHON) -m pytest --doctest-modules src -p no:xdist --ignore=src/fairpca/_tables/spark.py

bench:
	$(PYTHON) -m benchmarks

reproduce:
	$(PYTHON) -m fairpca reproduce

docs:
	$(PYTHON) -m sphinx -W --keep-going -b html docs docs/_build/html

dist:
	rm -rf dist
	$(PYTHON) -m build
	$(PYTHON) -m twine check --strict dist/*

docs/_static/report.png: src/fairpca/report/*
	$(PYTHON) docs/make_report_picture.py
