#include "plenum/control/launch.h"

#include <array>
#include <charconv>
#include <vector>

#include "plenum/base/check.h"

namespace plenum::control {
namespace {

/// More than any machine has, and few enough that a mistake is no flood.
constexpr std::uint32_t kMostRanks = 1U << 16;

/// The names that one launcher uses; empty where it has none.
struct Names {
  Launcher launcher;
  std::string_view rank, num_ranks, local_rank, num_local_ranks;
};

constexpr Names kPlenum = {Launcher::Plenum, kRankVariable, kNumRanksVariable, kLocalRankVariable,
                           kNumLocalRanksVariable};
constexpr std::array<Names, 3> kStarters = {{
    {Launcher::Torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {Launcher::OpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {Launcher::Pmi, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
}};

std::optional<std::uint32_t> number(VariableLookup lookup, std::string_view name) {
  const std::optional<std::string> text = lookup(name);
  if (!text) return std::nullopt;
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  base::require(error == std::errc() && end == text->data() + text->size(),
                "the environment variable {} must be a whole number: {}", name, *text);
  return value;
}

void check_ranks(const Launch& launch, const Names& names) {
  base::require(launch.num_ranks >= 1 && launch.num_ranks <= kMostRanks,
                "the environment variable {} must be 1 to {}: {}", names.num_ranks, kMostRanks,
                launch.num_ranks);
  base::require(launch.rank.value < launch.num_ranks,
                "the environment variable {} must be less than {}: {} and {}", names.rank, names.num_ranks,
                launch.rank.value, launch.num_ranks);
  if (launch.num_local_ranks) {
    base::require(*launch.num_local_ranks >= 1 && *launch.num_local_ranks <= launch.num_ranks,
                  "the environment variable {} must be 1 to {}: {} and {}", names.num_local_ranks,
                  names.num_ranks, *launch.num_local_ranks, launch.num_ranks);
  }
  if (launch.local_rank && launch.num_local_ranks) {
    base::require(*launch.local_rank < *launch.num_local_ranks,
                  "the environment variable {} must be less than {}: {} and {}", names.local_rank,
                  names.num_local_ranks, *launch.local_rank, *launch.num_local_ranks);
  }
}

/// What the variables of one launcher say; none where it has set neither rank nor number of ranks.
std::optional<Launch> read_names(VariableLookup lookup, const Names& names) {
  const std::optional<std::uint32_t> rank = number(lookup, names.rank);
  const std::optional<std::uint32_t> num_ranks = number(lookup, names.num_ranks);
  if (!rank && !num_ranks) return std::nullopt;
  base::require(rank.has_value() && num_ranks.has_value(),
                "the environment variable {} is set without {}: set both or neither",
                rank ? names.rank : names.num_ranks, rank ? names.num_ranks : names.rank);
  Launch launch{.launcher = names.launcher, .rank = {*rank}, .num_ranks = *num_ranks};
  launch.local_rank = number(lookup, names.local_rank);
  launch.num_local_ranks = number(lookup, names.num_local_ranks);
  check_ranks(launch, names);
  return launch;
}

/// What "2(x3),1" says for a node: how many tasks are on it. None for anything that is no such list.
std::optional<std::uint32_t> tasks_of_node(std::string_view list, std::uint32_t node) {
  const auto take_number = [&list]() -> std::optional<std::uint32_t> {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(list.data(), list.data() + list.size(), value);
    if (error != std::errc()) return std::nullopt;
    list.remove_prefix(static_cast<std::size_t>(end - list.data()));
    return value;
  };
  const auto take = [&list](std::string_view start) {
    const bool is_there = list.starts_with(start);
    if (is_there) list.remove_prefix(start.size());
    return is_there;
  };
  for (std::uint64_t first = 0; !list.empty();) {
    const std::optional<std::uint32_t> tasks = take_number();
    std::optional<std::uint32_t> times = 1;
    if (take("(x")) {
      times = take_number();
      if (!take(")")) return std::nullopt;
    }
    if (!tasks || !times) return std::nullopt;
    first += *times;
    if (node < first) return tasks;
    if (!take(",")) return std::nullopt;
  }
  return std::nullopt;
}

/// What Slurm says of a step of srun. The shell of sbatch, and that of salloc where it runs on a node, has
/// the rank 0 and the number of tasks that the job may have, but is no step or one with a number from
/// Slurm's own.
std::optional<Launch> read_slurm(VariableLookup lookup) {
  constexpr std::uint32_t kFirstReservedStep = 0xfffffff0U;
  std::optional<std::uint32_t> step = number(lookup, "SLURM_STEP_ID");
  if (!step) step = number(lookup, "SLURM_STEPID");
  const std::optional<std::uint32_t> num_tasks = number(lookup, "SLURM_STEP_NUM_TASKS");
  if (!step || *step >= kFirstReservedStep || !num_tasks) return std::nullopt;
  const std::optional<std::uint32_t> task = number(lookup, "SLURM_PROCID");
  base::require(task.has_value(),
                "the environment variable SLURM_STEP_NUM_TASKS is set without SLURM_PROCID: start the "
                "processes with srun");
  Launch launch{.launcher = Launcher::Slurm, .rank = {*task}, .num_ranks = *num_tasks};
  launch.local_rank = number(lookup, "SLURM_LOCALID");
  const std::optional<std::string> tasks_per_node = lookup("SLURM_STEP_TASKS_PER_NODE");
  const std::optional<std::uint32_t> node = number(lookup, "SLURM_NODEID");
  if (tasks_per_node && node) launch.num_local_ranks = tasks_of_node(*tasks_per_node, *node);
  check_ranks(launch, {Launcher::Slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
                       "SLURM_STEP_TASKS_PER_NODE"});
  return launch;
}

/// Throws UserError where two launchers speak of several processes, but not of the same.
void require_agreement(const Launch& one, const Launch& other) {
  base::require(
      one.is_alone() || other.is_alone() || (one.rank == other.rank && one.num_ranks == other.num_ranks),
      "the environment has the variables of two launchers that contradict each other: {} says rank "
      "{} of {}, {} says rank {} of {}; unset those of the one that is not meant",
      launcher_name(one.launcher), one.rank.value, one.num_ranks, launcher_name(other.launcher),
      other.rank.value, other.num_ranks);
}

/// What the launchers say that start single processes, the innermost where they are nested.
std::optional<Launch> read_starters(VariableLookup lookup) {
  std::optional<Launch> chosen;
  for (const Names& names : kStarters) {
    const std::optional<Launch> launch = read_names(lookup, names);
    if (!launch) continue;
    if (chosen) require_agreement(*chosen, *launch);
    if (!chosen || (chosen->is_alone() && !launch->is_alone())) chosen = launch;
  }
  return chosen;
}

/// Gives a launch the place on its host that Slurm knows, where both mean the same processes.
void complete_from(const std::optional<Launch>& slurm, Launch& launch) {
  if (!slurm || slurm->rank != launch.rank || slurm->num_ranks != launch.num_ranks) return;
  if (!launch.local_rank) launch.local_rank = slurm->local_rank;
  if (!launch.num_local_ranks) launch.num_local_ranks = slurm->num_local_ranks;
}

Launch choose(VariableLookup lookup) {
  if (std::optional<Launch> own = read_names(lookup, kPlenum)) return *own;
  std::optional<Launch> started = read_starters(lookup);
  // RANK=0 and WORLD_SIZE=1 are often left in an environment; mpirun's variables come from mpirun alone.
  const bool is_weak = started && started->launcher == Launcher::Torchrun && started->is_alone();
  if (started && !is_weak) {
    if (!started->local_rank || !started->num_local_ranks) complete_from(read_slurm(lookup), *started);
    return *started;
  }
  const std::optional<Launch> slurm = read_slurm(lookup);
  if (slurm && (!started || !slurm->is_alone())) return *slurm;
  return started.value_or(Launch{});
}

}  // namespace

std::string_view launcher_name(Launcher launcher) {
  switch (launcher) {
    case Launcher::None:
      return "no launcher";
    case Launcher::Plenum:
      return "plenum";
    case Launcher::Torchrun:
      return "torchrun";
    case Launcher::OpenMpi:
      return "mpirun (Open MPI)";
    case Launcher::Pmi:
      return "mpiexec (PMI)";
    case Launcher::Slurm:
      return "srun";
  }
  return "";
}

Launch read_launch(VariableLookup lookup) {
  Launch launch = choose(lookup);
  if (launch.is_alone()) {
    launch.local_rank = 0;
    launch.num_local_ranks = 1;
  }
  launch.secret = lookup(kSecretVariable).value_or("");
  constexpr std::size_t kShortestSecret = 16;
  base::require(launch.secret.empty() || launch.secret.size() >= kShortestSecret,
                "the environment variable {} must have at least {} characters", kSecretVariable,
                kShortestSecret);
  return launch;
}

}  // namespace plenum::control
