#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plenum/base/progress.h"
#include "plenum/describe/model_config.h"
#include "plenum/describe/task.h"
#include "plenum/train/note.h"
#include "plenum/train/run_options.h"
#include "plenum/train/task_prediction.h"

namespace plenum::train {

/// What `finetune` does if nothing else is said: three epochs of batches of 32 examples, the learning rate
/// warming up over a tenth of them and falling to 0, an evaluation of all of --dev after every epoch.
RunOptions fine_tuning_defaults();

/// The peak learning rate of such a model: the ranges of BERT's authors, lower for larger models, which
/// diverge sooner.
double fine_tuning_learning_rate(const describe::ModelConfig& model);

/// The options of a run that fine-tunes, whose source is settled, with what else can be settled before its
/// data is read: how long sequences may be. Leaves others as they are. `on_choice` gets a line for it.
RunOptions settle_task(RunOptions options, const Note& on_choice);

/// What a run that is done leaves behind, beside its checkpoints.
struct FineTunedModel {
  ModelSource source;     ///< its best checkpoint
  std::string directory;  ///< the same for transformers
  struct Labelled {
    std::string name;  ///< "dev" or "test"
    std::string path;  ///< of the examples
    std::string file;  ///< where their predictions are
    std::uint64_t num_examples = 0;
    std::vector<data::TaskScore> scores;  ///< none where an example has no label
  };
  std::vector<Labelled> labelled;
};

/// Exports the best checkpoint of a run to RUN/model, and writes what it says of --dev and --test as
/// RUN/dev-predictions.jsonl and RUN/test-predictions.jsonl. Overwrites what is there.
FineTunedModel finish_fine_tuning(const std::string& run, base::Progress& progress);

}  // namespace plenum::train
