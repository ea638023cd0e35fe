#!/usr/bin/env bash
# BERT-base in pipelines over MPI: four processes hold the model together, each a quarter of its layers; twice as many
# processes are two pipelines with half of every batch each.
#
#   recipes/pipeline.sh                      # four processes on this machine
#   HOSTS=hosts PROCESSES=8 recipes/pipeline.sh --schedule zb-h1
#
# Processes that follow each other hand activations on, so they should be neighbours: mpirun fills machine after machine.
set -euo pipefail
processes=${PROCESSES:-4}
hosts=()
[ -z "${HOSTS:-}" ] || hosts=(--hostfile "$HOSTS")

mpirun "${hosts[@]}" -np "$processes" --bind-to none --mca odls_base_sigkill_timeout 300 \
  "${PLENUM:-plenum}" train --device cpu --pp 4 --schedule 1f1b \
  --data "${DATA:-data}" --run "${RUN:-runs/pipeline}" --model bert-base --steps 3ep "$@"
