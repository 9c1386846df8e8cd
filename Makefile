# The commands of this project by their short names; CONTRIBUTING.md says what each takes.

BIN := .venv/bin
# the README's command that begins with .ci/setup and the word that follows
readme = sh -c "$$(grep '^sh \.ci/setup $(1) ' README.md)"

.PHONY: help setup test check docs format demo bench ci lock release

help: ## Show this list.
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10

setup: ## Install what development needs, in .venv.
	sh .ci/setup dev

test: ## Run the README's test command.
	$(call readme,test)

check: setup ## Run linter, formatter, types, import rule, and the tests of the documents.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=. $(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/test_architecture.py tests/test_readme.py

docs: ## Build the site of the documentation into .work/site, strictly.
	sh .ci/setup docs
	.venv-docs/bin/python -m mkdocs build --strict --quiet

format: setup ## Format the code, and mend what the linter can.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

demo: ## Run the README's demo.
	$(call readme,demo)

bench: setup ## Repeat every figure of benchmarks/README.md.
	benchmarks/run

lock: ## Renew .ci/constraints.txt: the newest version of every package that CI installs.
	sh .ci/setup lock

release: ## Try the release of VERSION=x.y.z, and with DO=yes make it; publishes nothing.
	.ci/release "$(VERSION)" "$(DO)"

ci: ## Check the last commit as CI does, in a clone of its own.
	.ci/run
