# The commands of the README. Everything that they need is installed by themselves; as root on Debian that includes
# iproute2, iptables, nftables and venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest

.PHONY: demo test test-kube test-istioctl test-interop check bench venv system clean

demo: system venv
	$(BIN)/python samples/demo.py

test: system venv check
	$(PYTEST) tests/unit tests/golden tests/wire tests/cli

test-kube: system venv
	scripts/test-kube-parts
	scripts/test-helm
	$(PYTEST) tests/kube

# The real istioctl against Mizzen. Needs Go; building istioctl costs six minutes of two cores, once.
test-istioctl: system venv
	scripts/test-kube-parts
	scripts/test-istioctl
	MIZZEN_NO_SKIPS=1 $(PYTEST) tests/istioctl

# Istio's own agent and control plane with Mizzen's, as root. Needs Go; building them costs five minutes of two cores, once.
test-interop: system venv
	scripts/test-kube-parts
	scripts/test-interop-parts
	MIZZEN_NO_SKIPS=1 $(PYTEST) tests/interop

check: venv
	$(BIN)/ruff check src tests samples bench
	$(BIN)/ruff format --check src tests samples bench
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: venv
	$(BIN)/python -m bench

venv: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

# Debian packages, as far as they are missing and may be installed.
system:
	@scripts/system-packages

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .import_linter_cache .hypothesis
