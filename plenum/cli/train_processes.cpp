#include "plenum/cli/train_processes.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "plenum/base/check.h"
#include "plenum/base/machine.h"
#include "plenum/cli/environment.h"
#include "plenum/cli/exit_codes.h"
#include "plenum/cli/terminal.h"
#include "plenum/control/launcher.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"
#include "plenum/train/run_directory.h"
#include "plenum/train/run_fingerprint.h"
#include "plenum/train/shared_directory.h"

namespace plenum::cli {
namespace {

using namespace std::chrono_literals;
using control::RankFailure;

/// In which a process that was told of a failure ends by itself, or is ended.
constexpr auto kGrace = 8s;

/// The words that this process was started with, the program as a path that can be started again.
std::vector<std::string> own_command() {
  std::vector<std::string> words;
  const std::string line = io::read_file("/proc/self/cmdline");
  for (std::size_t begin = 0; begin < line.size();) {
    const std::size_t end = std::min(line.find('\0', begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  words.front() = std::filesystem::read_symlink("/proc/self/exe").string();
  return words;
}

}  // namespace

void TrainProcesses::choose_gpu() const {
  const std::vector<std::string> gpus = visible_gpus();
  if (is_alone() || gpus.size() < 2) return;
  const std::size_t local_rank = launch_.local_rank.value_or(0);
  base::require(local_rank < gpus.size(),
                "there are more processes on this machine than GPUs: {} of them are visible", gpus.size());
  show_gpu(gpus[local_rank]);
}

void TrainProcesses::settle(train::RunSettings& run) const {
  if (is_alone()) return;
  run.ranks = launch_.num_ranks;
  if (run.threads) return;
  // Launchers may bind each process to cores of its own, or all to the same.
  const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  const std::int64_t share = std::max<std::int64_t>(1, cores / launch_.num_local_ranks.value_or(1));
  run.threads = run.ranks * std::min<std::int64_t>(share, base::usable_cores());
}

train::Processes TrainProcesses::connect(const train::RunOptions& settled, const train::TrainingData& data) {
  const bool is_gpu = settled.run.device == tensor::Device::Cuda;
  const bool is_new = is_first() && !io::path_exists(settled.run.directory);
  try {
    connect(settled, data, is_gpu);
  } catch (const base::UserError&) {
    // What holds something is left alone.
    std::error_code ignored;
    if (is_new) std::filesystem::remove(settled.run.directory, ignored);
    throw;
  }
  return train::Processes(
      *ranks_, [this](std::string_view text) { control_->say(text); },
      [this] { return control_->clock_offset().seconds; });
}

void TrainProcesses::connect(const train::RunOptions& settled, const train::TrainingData& data, bool is_gpu) {
  if (!is_gpu) connect_cpus(settled);
  if (is_first()) io::make_directories(settled.run.directory);
  if (!is_gpu) train::require_shared_directory(settled.run.directory, *ranks_);
  control_ = std::make_unique<control::ControlPlane>(
      launch_,
      control::ControlOptions{.run_directory = settled.run.directory,
                              .interface = settled.run.process.interface},
      [this](const RankFailure& failure) { on_failure(failure); });
  try {
    control_->compare(train::fingerprint_of(settled, data));
  } catch (const base::UserError&) {
    control_.reset();  // it is over, and all have been told
    throw;
  }
  if (is_gpu) connect_gpus();
}

void TrainProcesses::connect_cpus(const train::RunOptions& settled) {
  if (const std::optional<std::string> obstacle = comm::mpi::obstacle())
    base::fail("processes on CPUs train together over MPI: {}", *obstacle);
  mpi_ = std::make_unique<comm::mpi::MpiWorld>(comm::mpi::MpiWorldOptions{
      .reduction = settled.run.reduction == train::Reduction::Library ? comm::mpi::Reduction::Library
                                                                      : comm::mpi::Reduction::Direct,
      .on_abort = [this](comm::Rank, std::string_view reason) {
        if (control_) control_->report_failure(reason);
      }});
  base::require(
      mpi_->size() == launch_.num_ranks,
      "{} started {} processes, of which MPI knows {}; on CPUs start them with mpirun, or with srun "
      "--mpi=pmix",
      control::launcher_name(launch_.launcher), launch_.num_ranks, mpi_->size());
  ranks_ = mpi_->communicator();
}

void TrainProcesses::connect_gpus() {
  std::string id(sizeof(comm::nccl::Id), '\0');
  if (is_first()) {
    const comm::nccl::Id made = comm::nccl::make_id();
    std::ranges::transform(made, id.begin(), [](std::byte byte) { return static_cast<char>(byte); });
  }
  id = control_->broadcast(id);
  comm::nccl::Id told{};
  std::ranges::transform(id, told.begin(), [](char byte) { return static_cast<std::byte>(byte); });
  auto world = std::make_unique<comm::nccl::NcclWorld>(
      launch_.rank, launch_.num_ranks, told,
      [this](comm::Rank, std::string_view reason) { control_->report_failure(reason); });
  const std::lock_guard lock(mutex_);
  nccl_ = std::move(world);
  ranks_ = nccl_->communicator().duplicate();
}

/// By a thread of the control plane.
void TrainProcesses::on_failure(const RankFailure& failure) {
  const std::string text = control::failure_text(failure);
  std::thread([text, is_told = tells(failure)] {
    std::this_thread::sleep_for(kGrace);
    if (is_told) say(stderr, fmt::format("plenum: error: {}\n", text));
    ::_exit(kRankFailedCode);
  }).detach();
  const std::lock_guard lock(mutex_);
  if (mpi_) mpi_->abort_here(failure.rank, text);
  if (nccl_) nccl_->abort_here(failure.rank, text);
}

RankFailure TrainProcesses::fail(std::string_view what, bool is_aborted) {
  const RankFailure own{.rank = launch_.rank, .what = std::string(what)};
  if (!control_) return own;
  // Who was aborted by another hears of that one soon.
  constexpr auto kPatience = 20s;
  const auto begin = std::chrono::steady_clock::now();
  if (!is_aborted) control_->report_failure(what);
  while (std::chrono::steady_clock::now() - begin < kPatience) {
    if (const std::optional<RankFailure> failure = control_->failure()) return *failure;
    std::this_thread::sleep_for(10ms);
  }
  return own;
}

void TrainProcesses::end() {
  if (control_) control_->goodbye();
}

int train_on_gpus(const train::RunSettings& run) {
  const auto count = static_cast<std::size_t>(run.process.gpus);
  std::vector<std::string> gpus = visible_gpus();
  base::require(gpus.size() >= count, "--gpus {} asks for more GPUs than this machine shows: {}", count,
                gpus.size());
  gpus.resize(count);
  base::require(!run.directory.empty(), "no place for the run is given; add --run DIR");
  const std::string logs = train::RunPaths(run.directory).logs;
  io::make_directories(logs);
  return control::launch_processes(
      {.command = own_command(),
       .num_processes = static_cast<std::uint32_t>(count),
       .environment = whole_environment(),
       .devices = gpus,
       .log_of = [&](std::uint32_t rank) { return fmt::format("{}/rank-{}.log", logs, rank); },
       .tell = [](std::string_view line) { say(stderr, fmt::format("plenum: {}\n", line)); },
       .num_restarts = static_cast<std::uint32_t>(run.process.restarts),
       .user_error_code = kUserErrorCode,
       .stopped_code = kStoppedCode});
}

}  // namespace plenum::cli
