#!/usr/bin/env bash
# BERT-base on the CPUs of several machines, started by mpirun from one of them.
#
#   echo "node1 slots=2" > hosts; echo "node2 slots=2" >> hosts    # a process for each socket
#   recipes/mpi.sh
#
# Program, dataset and run directory are on a file system that all machines share. Open MPI would kill processes a second
# after it has passed on SIGTERM: they have five minutes here, to write a checkpoint.
set -euo pipefail
hosts=${HOSTS:-hosts}
processes=$(awk '!/^#/ && NF { n = 1; for (i = 2; i <= NF; ++i) if (sub(/^slots=/, "", $i)) n = $i; sum += n } END { print sum }' "$hosts")

mpirun --hostfile "$hosts" -np "$processes" --map-by socket --bind-to socket --mca odls_base_sigkill_timeout 300 \
  "${PLENUM:-plenum}" train --device cpu \
  --data "${DATA:-data}" --run "${RUN:-runs/mpi}" --model bert-base --steps 3ep "$@"
