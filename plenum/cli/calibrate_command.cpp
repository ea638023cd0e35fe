#include <algorithm>
#include <ctime>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/machine.h"
#include "plenum/base/units.h"
#include "plenum/calibrate/calibration.h"
#include "plenum/calibrate/machine_file.h"
#include "plenum/cli/calibrate_report.h"
#include "plenum/cli/command.h"
#include "plenum/cli/environment.h"
#include "plenum/cli/progress_bar.h"
#include "plenum/comm/mpi/mpi_world.h"
#include "plenum/tensor/cuda_device.h"

namespace plenum::cli {
namespace {

using calibrate::RanksAndThreads;
using tensor::Device;

std::string today() {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{:%Y-%m-%d}", fmt::localtime(now));
}

class CalibrateCommand final : public Command {
 public:
  std::string name() const override { return "calibrate"; }
  std::string summary() const override {
    return "Measure this machine for the planner: operations, memory, links between ranks";
  }

  std::vector<base::OptionTable> tables() override {
    base::OptionTable table("calibrate");
    table.add("output", output_, "FILE", "Write what was measured to this TOML file (docs/formats.md)");
    table.add_choice("device", device_, {{"cpu", Device::Cpu}, {"cuda", Device::Cuda}},
                     "Measure this device");
    table.add("ranks", ranks_, "R",
              "Numbers of ranks that are busy at the same time (default: 1, 2, 4 ... up to all cores)");
    table.add("threads", threads_, 1, 1024, "Threads of a rank (default: as many as cores allow)");
    table.add("seconds", seconds_, 0.1, 3600, "Take about so long in all");
    table.add("json", json_, "Print JSON");
    return {std::move(table)};
  }

  int run() override;

 private:
  std::vector<RanksAndThreads> settings() const;
  calibrate::Machine describe_machine() const;
  calibrate::Setting measure(const RanksAndThreads& wanted, double seconds);
  int run_alone(calibrate::Machine machine);
  int run_with_others(calibrate::Machine machine, const control::Launch& launch);
  void report(const calibrate::Machine& machine) const;

  std::string output_;
  Device device_ = Device::Cpu;
  std::vector<std::string> ranks_;
  std::optional<std::int64_t> threads_;
  double seconds_ = 40;
  bool json_ = false;
};

std::vector<RanksAndThreads> CalibrateCommand::settings() const {
  const auto num_cores = static_cast<std::size_t>(base::usable_cores());
  const auto threads_of = [&](std::size_t num_ranks) {
    if (threads_) return static_cast<std::size_t>(*threads_);
    return device_ == Device::Cuda ? std::size_t{1} : std::max<std::size_t>(1, num_cores / num_ranks);
  };
  if (ranks_.empty()) {
    if (device_ == Device::Cuda) return {{1, threads_of(1)}};
    std::vector<RanksAndThreads> settings = calibrate::default_settings(num_cores);
    if (!threads_) return settings;
    for (RanksAndThreads& setting : settings) setting.threads = threads_of(setting.ranks);
    // Not more threads than cores, unless one rank alone has.
    std::erase_if(settings, [&](const RanksAndThreads& setting) {
      return setting.ranks > 1 && setting.ranks * setting.threads > num_cores;
    });
    return settings;
  }
  constexpr std::int64_t kMostRanks = 1024;
  std::vector<RanksAndThreads> settings;
  for (const std::string& text : ranks_) {
    const std::int64_t num_ranks = base::parse_integer(text, "ranks");
    base::require(num_ranks >= 1 && num_ranks <= kMostRanks, "--ranks must lie between 1 and {}: {}",
                  kMostRanks, num_ranks);
    settings.push_back(
        {static_cast<std::size_t>(num_ranks), threads_of(static_cast<std::size_t>(num_ranks))});
  }
  return settings;
}

calibrate::Machine CalibrateCommand::describe_machine() const {
  const base::Machine found = base::inspect_machine();
  calibrate::Machine machine;
  machine.date = today();
  // Nothing was allocated yet: program and libraries.
  machine.overhead_bytes = static_cast<double>(base::peak_memory_bytes());
  if (device_ == Device::Cpu) {
    machine.name = found.cpu_model.empty() ? "unknown processor" : found.cpu_model;
    machine.memory_bytes = static_cast<double>(found.memory_bytes);
    return machine;
  }
  const tensor::CudaDeviceInfo gpu = tensor::cuda_device_info();
  machine.name = gpu.name;
  machine.memory_bytes = static_cast<double>(gpu.total_bytes);
  machine.overhead_bytes = static_cast<double>(gpu.total_bytes - tensor::cuda_free_bytes());
  return machine;
}

calibrate::Setting CalibrateCommand::measure(const RanksAndThreads& wanted, double seconds) {
  calibrate::CalibrationOptions options;
  options.device = device_;
  options.ranks = wanted.ranks;
  options.threads = wanted.threads;
  options.seconds = seconds;
  ProgressBar bar(stderr);
  bool has_begun = false;
  options.on_progress = [&](std::size_t done, std::size_t count) {
    if (!has_begun) {
      bar.begin(fmt::format("measuring {} x {}", wanted.ranks, wanted.threads), "sizes", count);
      has_begun = true;
    }
    bar.advance_to(done);
  };
  calibrate::Setting setting = calibrate::calibrate(options);
  bar.end();
  return setting;
}

void CalibrateCommand::report(const calibrate::Machine& machine) const {
  if (!output_.empty()) calibrate::write_machine(machine, output_);
  if (json_) {
    fmt::print("{}\n", calibrate_report_json(machine));
    return;
  }
  fmt::print("{}", calibrate_report_text(machine));
  if (!output_.empty()) fmt::print("Written to {}.\n", output_);
}

int CalibrateCommand::run_alone(calibrate::Machine machine) {
  const std::vector<RanksAndThreads> wanted = settings();
  for (const RanksAndThreads& setting : wanted) {
    machine.settings.push_back(measure(setting, seconds_ / static_cast<double>(wanted.size())));
  }
  report(machine);
  return 0;
}

/// Under mpirun: every process is a rank, all are busy at the same time, and the link is MPI's between them.
int CalibrateCommand::run_with_others(calibrate::Machine machine, const control::Launch& launch) {
  base::require(device_ == Device::Cpu, "several processes measure the CPU; run one process for the GPU");
  base::require(ranks_.empty(), "with several processes each is a rank; leave out --ranks");
  const std::size_t num_local = launch.num_local_ranks.value_or(launch.num_ranks);
  // Whether the launcher bound each process to cores of its own is not known: one thread is always there.
  const std::size_t threads = threads_ ? static_cast<std::size_t>(*threads_) : 1;
  comm::mpi::MpiWorld world;
  const std::unique_ptr<comm::Communicator> communicator = world.communicator();
  std::vector<calibrate::MeasuredLink> links = calibrate::measure_link(*communicator);
  communicator->start_barrier(1).wait();
  calibrate::Setting setting = measure({1, threads}, seconds_);
  communicator->start_barrier(1).wait();
  if (launch.rank.index() != 0) return 0;
  setting.ranks = num_local;
  setting.links = std::move(links);
  machine.settings.push_back(std::move(setting));
  report(machine);
  return 0;
}

int CalibrateCommand::run() {
  const control::Launch launch = launch_of_environment();
  calibrate::Machine machine = describe_machine();
  return launch.is_alone() ? run_alone(std::move(machine)) : run_with_others(std::move(machine), launch);
}

}  // namespace

std::unique_ptr<Command> make_calibrate_command() {
  return std::make_unique<CalibrateCommand>();
}

}  // namespace plenum::cli
