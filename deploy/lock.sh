#!/usr/bin/env bash
# Recreates the lock files from pyproject.toml: every platform, Python 3.11 to 3.13.
# LOCK_ARGS="--upgrade" takes the newest releases; without it pins stay where they can.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools"
"$tools/bin/pip" install --quiet uv

lock() { # lock OUTPUT [MORE UV OPTIONS]
  "$tools/bin/uv" --no-config pip compile pyproject.toml --quiet --universal \
    --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url \
    --custom-compile-command "make lock" --output-file "$@" ${LOCK_ARGS:-}
}
lock requirements.txt
lock requirements-dev.txt --group dev --constraint requirements.txt
