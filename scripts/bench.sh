#!/usr/bin/env bash
# Runs every benchmark of tests/bench; each prints ratios measured in one run. Usage: scripts/bench.sh BUILD_FOLDER
set -euo pipefail
for bench in "$1"/bench/*; do "$bench"; done
