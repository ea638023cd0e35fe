#include "plenum/train/training_data.h"

#include "plenum/train/prepared_data.h"
#include "plenum/train/task_data.h"

namespace plenum::train {

std::unique_ptr<const TrainingData> open_training_data(const RunOptions& options) {
  if (options.task.kind) return std::make_unique<TaskData>(options);
  return std::make_unique<PreparedData>(options.data.directory);
}

}  // namespace plenum::train
