#!/bin/sh
# Runs a program that needs a GPU; without one, says so and leaves with 77, which ctest reports as skipped.
# Usage: on_gpu.sh PROGRAM [ARGUMENT...]
if ! ls /dev/nvidia[0-9]* /dev/dxg >/dev/null 2>&1; then
  echo "NOT RUN: this machine has no GPU, so $(basename "$1") was built and linked, but nothing of it has run"
  exit 77
fi
exec "$@"
