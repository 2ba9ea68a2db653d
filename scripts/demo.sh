#!/usr/bin/env bash
# The first job of a newcomer: draws a small JPEG dataset and trains on it with one head, two CPU workers and
# two trainers. Usage: scripts/demo.sh BIN_FOLDER DEMO_FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$1
folder=$(realpath -m "$2")

if [[ ! -d $folder/dataset/train ]]; then
  rm -rf "$folder/dataset"
  "$bin/hetero-runtime" make-dataset --format ImageFolder --classes 10 --samples 1500 \
    --validation-samples 300 --size 32 --seed 7 "$folder/dataset"
fi
exec "$bin/hetero-runtime" local examples/quickstart.yaml --output "$folder/run" \
  --set "dataset.uri=file://$folder/dataset/train" \
  --set "dataset.validation.uri=file://$folder/dataset/val"
