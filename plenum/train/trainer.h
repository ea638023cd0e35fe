#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "plenum/train/evaluation.h"
#include "plenum/train/hang_error.h"
#include "plenum/train/memory_report.h"
#include "plenum/train/processes.h"
#include "plenum/train/run_options.h"
#include "plenum/train/training_data.h"
#include "plenum/train/training_observer.h"

namespace plenum::train {

/// Connects this process with the others of the run, once its options are settled and before anything of it
/// is opened.
using Connect = std::function<Processes(const RunOptions& settled, const TrainingData& data)>;

/// How far a process brought a run.
struct TrainingResult {
  enum class End : std::uint8_t {
    Finished,  ///< all steps are done, perhaps before this process began
    Stopped,   ///< asked to, or out of time; a checkpoint was written
    NoBetter,  ///< as many evaluations as --stop-when-worse says found no better model
  } end = End::Finished;
  std::uint64_t first_step = 0;  ///< that this process had to do; those before were done already
  std::uint64_t step = 0;
  std::uint64_t num_steps = 0;
  std::optional<double> loss;                 ///< of the last step that this process did, if it did one
  double seconds = 0;                         ///< that this process trained, evaluated and saved
  std::uint64_t tokens = 0;                   ///< real ones that this process trained on
  std::string checkpoint;                     ///< the newest
  std::optional<Evaluation> evaluation;       ///< of the last step, where it was evaluated
  std::optional<double> best_loss;            ///< of the best of all evaluations of the run
  std::optional<data::TaskScore> best_score;  ///< by which it is the best; absent where that is the loss
  std::uint64_t best_step = 0;                ///< where it was found
  MemoryReport memory;                        ///< as planned
  std::uint64_t used_bytes = 0;               ///< of the device's memory: DeviceMemory::used_bytes
};

/// Trains a run from where it stands to its end, or until `stop` is asked for or its time is up: the step
/// under way is finished then, and a checkpoint written. Everything a step does is a function of options,
/// data, weights and its number, so a run that was killed ends with the same bytes as one that was not.
/// Throws UserError, or HangError where a step hung and could be ended, else TrainingObserver::on_hang is
/// told; what was checkpointed before is there then.
///
/// Of several processes each calls it at the same time, with the same options, of which --ranks is their
/// number, and a way to connect them. A stop that one is asked for stops all. What one throws the others must
/// be told (comm::Communicator::abort_all), or they wait for it.
TrainingResult train(const RunOptions& options, TrainingObserver& observer, const std::stop_token& stop,
                     const Connect& connect = {});

}  // namespace plenum::train
