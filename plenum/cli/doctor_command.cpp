#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plenum/base/build_info.h"
#include "plenum/base/check.h"
#include "plenum/base/instruction_set.h"
#include "plenum/base/machine.h"
#include "plenum/base/units.h"
#include "plenum/cli/command.h"
#include "plenum/comm/mpi/mpi_world.h"
#include "plenum/comm/nccl/nccl_world.h"
#include "plenum/tensor/cuda_device.h"

namespace plenum::cli {
namespace {

/// A part of machine or build: whether Plenum uses it here, and what there is or why not.
struct Part {
  std::string name;
  bool used = false;
  std::string detail;
};

Part kernels_part() {
  const std::string level(base::kernel_instruction_set());
  if (!base::has_instruction_set(level)) {
    return {"kernels", false, fmt::format("built for {}, which this processor does not have", level)};
  }
  const bool has_more = level != "x86-64-v4" && base::has_instruction_set("x86-64-v4");
  return {"kernels", true,
          fmt::format("built for {}{}", level, has_more ? "; this processor has x86-64-v4" : "")};
}

Part mpi_part() {
  if (const std::optional<std::string> obstacle = comm::mpi::obstacle()) return {"MPI", false, *obstacle};
  return {"MPI", true, comm::mpi::library_name()};
}

Part cuda_part(const base::BuildInfo& build) {
  if (tensor::is_cuda_built()) {
    return {"CUDA", true, fmt::format("built with toolkit {}: --device cuda", build.cuda_toolkit)};
  }
  const std::string toolkit =
      build.cuda_toolkit.empty() ? "no toolkit" : fmt::format("toolkit {}", build.cuda_toolkit);
  return {"CUDA", false,
          fmt::format("{} found when built; the backend needs 12.4 or later and make build PRESET=cuda",
                      toolkit)};
}

Part nccl_part() {
  if (const std::optional<std::string> obstacle = comm::nccl::obstacle()) return {"NCCL", false, *obstacle};
  return {"NCCL", true, comm::nccl::library_name()};
}

std::string gpu_text() {
  const tensor::CudaDeviceInfo gpu = tensor::cuda_device_info();
  return fmt::format("{}, compute capability {}.{}, {} multiprocessors, {}, {} free; driver for CUDA {}.{}",
                     gpu.name, gpu.major, gpu.minor, gpu.num_multiprocessors,
                     base::format_bytes(gpu.total_bytes), base::format_bytes(tensor::cuda_free_bytes()),
                     gpu.driver_version / 1000, gpu.driver_version % 1000 / 10);
}

Part gpu_part(const base::Machine& machine) {
  const std::string driver =
      machine.nvidia_driver.empty() ? "no NVIDIA driver is loaded" : machine.nvidia_driver;
  try {
    return {"GPU", true, fmt::format("{} ({})", gpu_text(), driver)};
  } catch (const base::UserError& error) {
    return {"GPU", false, fmt::format("{} ({})", error.what(), driver)};
  }
}

std::vector<Part> examine() {
  const base::BuildInfo build = base::build_info();
  const base::Machine machine = base::inspect_machine();
  std::string compiler = fmt::format("{}, {}", build.compiler, build.build_type);
  if (!build.sanitizers.empty()) compiler += fmt::format(", sanitizers {} (slow)", build.sanitizers);
  return {{"compiler", true, compiler},
          {"CPU", true, machine.cpu_model},
          {"extensions", true, fmt::format("{}", fmt::join(machine.cpu_features, " "))},
          {"cores", true, fmt::format("{} usable: the default of --threads", machine.usable_cores)},
          {"memory", true,
           fmt::format("{}, {} available", base::format_bytes(machine.memory_bytes),
                       base::format_bytes(machine.available_memory_bytes))},
          kernels_part(),
          mpi_part(),
          cuda_part(build),
          nccl_part(),
          gpu_part(machine)};
}

class DoctorCommand final : public Command {
 public:
  std::string name() const override { return "doctor"; }
  std::string summary() const override { return "Show what this machine and this build can do"; }

  std::vector<base::OptionTable> tables() override {
    base::OptionTable table("doctor");
    table.add("json", json_, "Print JSON");
    return {table};
  }

  int run() override {
    const std::vector<Part> parts = examine();
    if (json_) {
      nlohmann::ordered_json report;
      report["version"] = base::build_info().version;
      for (const Part& part : parts)
        report["parts"].push_back({{"name", part.name}, {"used", part.used}, {"detail", part.detail}});
      fmt::print("{}\n", report.dump(2));
      return 0;
    }
    fmt::print("plenum {}\n\n  {:<11} {:<5} {}\n", base::build_info().version, "part", "used",
               "what is here");
    for (const Part& part : parts)
      fmt::print("  {:<11} {:<5} {}\n", part.name, part.used ? "yes" : "no", part.detail);
    return 0;
  }

 private:
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_doctor_command() {
  return std::make_unique<DoctorCommand>();
}

}  // namespace plenum::cli
