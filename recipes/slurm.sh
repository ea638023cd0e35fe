#!/usr/bin/env bash
#SBATCH --job-name=bert-base
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=USR1@300
# BERT-base on 2 nodes with 4 GPUs each. Five minutes before the time is up Slurm sends SIGUSR1 to the processes: they write
# a checkpoint and end with code 85, and the job queues itself again. So does a run that hung (75) or lost a process (69).
#
#   sbatch recipes/slurm.sh
set -uo pipefail

srun "${PLENUM:-plenum}" train --device "${DEVICE:-cuda}" \
  --data "${DATA:-data}" --run "${RUN:-runs/slurm}" --model bert-base --steps 3ep "$@"
code=$?
case $code in
  85 | 75 | 69) scontrol requeue "$SLURM_JOB_ID" ;;
esac
exit $code
