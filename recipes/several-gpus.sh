#!/usr/bin/env bash
# BERT-base on all GPUs of this machine.
#
#   plenum prepare corpus/ --output data --train-vocab 30000 --max-length 512 --holdout 0.5%
#   recipes/several-gpus.sh
#
# Each GPU has a process of its own. After a failure the run resumes from its last checkpoint, three times at most.
set -euo pipefail
gpus=${GPUS:-$(nvidia-smi --list-gpus | wc -l)}

${PLENUM:-plenum} train --gpus "$gpus" --restart 3 \
  --data "${DATA:-data}" --run "${RUN:-runs/several-gpus}" --model bert-base --steps 3ep "$@"
