#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "plenum/comm/communicator.h"
#include "plenum/comm/mpi/mpi_world.h"
#include "plenum/comm/nccl/nccl_world.h"
#include "plenum/control/control_plane.h"
#include "plenum/control/launch.h"
#include "plenum/train/processes.h"
#include "plenum/train/run_options.h"
#include "plenum/train/training_data.h"

namespace plenum::cli {

/// This process among those that were started to train a run together.
///
/// They are connected twice: by the control plane, which knows who is alive, and by MPI or, on GPUs, NCCL,
/// which carries the data. A failure of one ends all: what waits for others throws, and a process that cannot
/// be brought to its end that way is ended.
class TrainProcesses {
 public:
  explicit TrainProcesses(const control::Launch& launch) : launch_(launch) {}
  TrainProcesses(const TrainProcesses&) = delete;
  TrainProcesses& operator=(const TrainProcesses&) = delete;

  bool is_alone() const { return launch_.is_alone(); }
  bool is_first() const { return is_alone() || launch_.rank.index() == 0; }

  /// Lets a process whose launcher gave it several GPUs use its own. Before anything asks for the GPU.
  void choose_gpu() const;
  /// What the options say about ranks and threads, for this process.
  void settle(train::RunSettings& run) const;

  /// Waits for the others, and throws UserError if this one or another does not belong to them.
  train::Processes connect(const train::RunOptions& settled, const train::TrainingData& data);

  /// What ended the run, once this process is known to have failed with `what`; another's failure if that is
  /// why. Tells the others, and waits until all know.
  control::RankFailure fail(std::string_view what, bool is_aborted);
  bool is_own(const control::RankFailure& failure) const { return failure.rank == launch_.rank; }
  /// Whether this process is the one that tells people of another's failure: the first that is left.
  bool tells(const control::RankFailure& failure) const {
    return launch_.rank.index() == (failure.rank.index() == 0 ? 1U : 0U);
  }
  /// Ends without a failure.
  void end();

 private:
  void connect(const train::RunOptions& settled, const train::TrainingData& data, bool is_gpu);
  void connect_cpus(const train::RunOptions& settled);
  void connect_gpus();
  void on_failure(const control::RankFailure& failure);

  control::Launch launch_;
  std::unique_ptr<control::ControlPlane> control_;
  std::mutex mutex_;  ///< of the next two while they are made
  std::unique_ptr<comm::mpi::MpiWorld> mpi_;
  std::unique_ptr<comm::nccl::NcclWorld> nccl_;
  std::unique_ptr<comm::Communicator> ranks_;
};

/// Starts `gpus` processes of this program on this machine, with the arguments that it was given, and waits
/// for them. Returns how they ended.
int train_on_gpus(const train::RunSettings& run);

}  // namespace plenum::cli
