#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plenum/base/function_ref.h"
#include "plenum/base/ids.h"

namespace plenum::control {

/// Who started the processes of a run.
enum class Launcher {
  None,      ///< nobody: a process on its own
  Plenum,    ///< control/launcher
  Torchrun,  ///< RANK, WORLD_SIZE; also set by hand
  OpenMpi,
  Pmi,  ///< MPICH, Intel MPI and others that start processes by Hydra
  Slurm,
};

/// "mpirun (Open MPI)" and so on, for messages to people.
std::string_view launcher_name(Launcher launcher);

/// Who this process is among the processes of a run.
struct Launch {
  Launcher launcher = Launcher::None;
  base::Rank rank = {};
  std::uint32_t num_ranks = 1;
  std::optional<std::uint32_t> local_rank = {};  ///< among those of this host, where the launcher says so
  std::optional<std::uint32_t> num_local_ranks = {};
  std::string secret = {};  ///< PLENUM_SECRET; empty where it is not set

  bool is_alone() const { return num_ranks == 1; }
  /// Whether all processes of the run are known to be on this host.
  bool is_on_one_host() const { return num_local_ranks == num_ranks; }
};

/// The names of the variables that control/launcher gives its processes.
inline constexpr std::string_view kRankVariable = "PLENUM_RANK";
inline constexpr std::string_view kNumRanksVariable = "PLENUM_NUM_RANKS";
inline constexpr std::string_view kLocalRankVariable = "PLENUM_LOCAL_RANK";
inline constexpr std::string_view kNumLocalRanksVariable = "PLENUM_NUM_LOCAL_RANKS";
inline constexpr std::string_view kSecretVariable = "PLENUM_SECRET";

/// The value of an environment variable; none where it is not set.
using VariableLookup = base::FunctionRef<std::optional<std::string>(std::string_view name)>;

/// Reads who this process is from the variables of the launcher that started it. Launchers may be nested, as
/// mpirun in a Slurm job is: Plenum's own variables come first, then those of torchrun, Open MPI and PMI, of
/// which those that speak of one process yield to those that speak of several, and Slurm's last. Slurm counts
/// only within a step that srun started; a batch script is a process on its own.
///
/// Throws UserError for variables that are malformed, incomplete or contradict each other.
Launch read_launch(VariableLookup lookup);

}  // namespace plenum::control
