#include "plenum/base/machine.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include <sched.h>

namespace plenum::base {
namespace {

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The text behind `key :` of the first such line of a /proc file.
std::string field(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || !std::string_view(line).starts_with(key)) continue;
    const std::size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? std::string() : line.substr(start);
  }
  return {};
}

std::uint64_t memory_field(const char* path, std::string_view key) {
  std::istringstream text(field(path, key));
  std::uint64_t kibibytes = 0;
  text >> kibibytes;
  return kibibytes * 1024;
}

std::vector<std::string> vector_extensions() {
  static constexpr std::string_view kWanted[] = {
      "sse4_2",   "avx",      "avx2",        "fma",         "f16c",        "avx512f",  "avx512bw",
      "avx512vl", "avx_vnni", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_tile"};
  std::istringstream flags(field("/proc/cpuinfo", "flags"));
  std::vector<std::string> found;
  for (std::string flag; flags >> flag;) {
    if (std::find(std::begin(kWanted), std::end(kWanted), flag) != std::end(kWanted)) found.push_back(flag);
  }
  return found;
}

/// The cores that the container's processor quota amounts to (control groups, version 2), rounded up; 0 for
/// no quota.
int quota_cores() {
  std::istringstream text(first_line("/sys/fs/cgroup/cpu.max"));
  double quota = 0;
  double period = 0;
  return text >> quota >> period && period > 0 ? static_cast<int>(std::ceil(quota / period)) : 0;
}

std::optional<std::uint64_t> number_in(const std::string& path) {
  std::istringstream text(first_line(path.c_str()));
  std::uint64_t number = 0;
  return text >> number ? std::optional(number) : std::nullopt;
}

/// The value behind `key ` in a memory.stat file.
std::uint64_t statistic(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::string name;
  std::uint64_t value = 0;
  while (file >> name >> value) {
    if (name == key) return value;
  }
  return 0;
}

/// What a control group (version 2) lets its processes still take; nothing without a limit. Pages of files
/// that were not read lately are given up before anyone is refused.
std::optional<std::uint64_t> room_in_group(const std::string& directory) {
  const std::optional<std::uint64_t> limit = number_in(directory + "/memory.max");
  if (!limit) return std::nullopt;
  const std::uint64_t used = number_in(directory + "/memory.current").value_or(0);
  const std::uint64_t room = *limit > used ? *limit - used : 0;
  return std::min(*limit, room + statistic(directory + "/memory.stat", "inactive_file"));
}

/// This process's control group, from the line "0::/path".
std::string own_group() {
  std::ifstream file("/proc/self/cgroup");
  constexpr std::string_view kVersion2 = "0::";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kVersion2)) return line.substr(kVersion2.size());
  }
  return {};
}

}  // namespace

std::uint64_t available_memory_bytes() {
  std::uint64_t available = memory_field("/proc/meminfo", "MemAvailable");
  // A limit holds for all groups below: this process's own, and every one it lies in.
  for (std::string group = own_group();; group.resize(group.rfind('/'))) {
    if (const auto room = room_in_group("/sys/fs/cgroup" + group)) available = std::min(available, *room);
    if (group.rfind('/') == std::string::npos) return available;
  }
}

std::uint64_t peak_memory_bytes() {
  return memory_field("/proc/self/status", "VmHWM");
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int allowed = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  const int quota = quota_cores();
  return quota > 0 ? std::min(allowed, quota) : allowed;
}

Machine inspect_machine() {
  return {.cpu_model = field("/proc/cpuinfo", "model name"),
          .cpu_features = vector_extensions(),
          .usable_cores = usable_cores(),
          .memory_bytes = memory_field("/proc/meminfo", "MemTotal"),
          .available_memory_bytes = available_memory_bytes(),
          .nvidia_driver = first_line("/proc/driver/nvidia/version")};
}

}  // namespace plenum::base
