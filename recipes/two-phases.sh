#!/usr/bin/env bash
# BERT's recipe: most steps on sequences of 128 tokens, which are cheap, then the last tenth on 512, for the positions
# behind 128. Both datasets are of the same text and vocabulary.
#
#   TEXT=corpus recipes/two-phases.sh
#   TEXT=corpus WORK=runs/large MODEL=bert-large STEPS_128=90000 STEPS_512=10000 recipes/two-phases.sh --global-batch 131072tok
#
# Interrupted, the same command resumes where it stopped. The second phase begins with the best weights of the first,
# a quarter of its learning rate and new moments. Arguments go to both phases.
set -euo pipefail
plenum=${PLENUM:-plenum}
work=${WORK:-runs/two-phases}
mkdir -p "$work"

prepare() {
  [ -e "$work/data-$1/dataset.json" ] || "$plenum" prepare "${TEXT:?give the text: TEXT=DIR}" --output "$work/data-$1" \
    --max-length "$1" --documents "${DOCUMENTS:-auto}" --holdout 1% "${@:2}"
}
prepare 128 --train-vocab "${VOCABULARY:-30000}"
prepare 512 --vocab "$work/data-128/vocab.txt"

"$plenum" train --data "$work/data-128" --run "$work/phase-1" --model "${MODEL:-bert-base}" \
  --steps "${STEPS_128:-90000}" "$@"
"$plenum" train --data "$work/data-512" --run "$work/phase-2" --init "$work/phase-1" \
  --steps "${STEPS_512:-10000}" "$@"
