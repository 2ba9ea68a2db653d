#!/usr/bin/env bash
# What only a machine with a GPU can say, in at most 40 minutes: set-up, tests, training steps, the reference workload and
# a script beside a DataLoader, in one table (out/gpu-day/gpu-day.md). scripts/gpu_day.sh --help
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 -B tests/bench/gpu/day.py "$@"
