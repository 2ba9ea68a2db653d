#!/usr/bin/env bash
# Runs every benchmark of tests/bench; each prints ratios measured in one run. Usage: scripts/bench.sh BUILD_FOLDER
set -euo pipefail
for bench in "$1"/bench/*; do "$bench"; done
cd "$(dirname "$0")/.."
if compgen -G '.deps/python/.installed-*' >/dev/null; then
  tests/bench/loader/consumer.py
  for pipeline in imagenet blur; do tests/bench/loader/compare.py --pipeline "$pipeline"; done
else
  echo "scripts and DataLoader: NOT RUN, scripts/setup_python.sh installs what they need"
fi
