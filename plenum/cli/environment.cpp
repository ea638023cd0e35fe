#include "plenum/cli/environment.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <unistd.h>

#include "plenum/io/directory.h"

namespace plenum::cli {
namespace {

constexpr const char* kVisibleGpus = "CUDA_VISIBLE_DEVICES";

std::optional<std::string> variable(std::string_view name) {
  const char* const value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace
bool color_is_welcome() {
  return variable("NO_COLOR").value_or("").empty() && variable("TERM").value_or("") != "dumb";
}

control::Launch launch_of_environment() {
  return control::read_launch([](std::string_view name) { return variable(name); });
}

std::vector<std::string> whole_environment() {
  std::vector<std::string> variables;
  for (char** entry = ::environ; *entry != nullptr; ++entry) variables.emplace_back(*entry);
  return variables;
}

std::vector<std::string> visible_gpus() {
  std::vector<std::string> gpus;
  if (const std::optional<std::string> listed = variable(kVisibleGpus)) {
    for (std::size_t begin = 0; begin < listed->size();) {
      const std::size_t end = std::min(listed->find(',', begin), listed->size());
      gpus.push_back(listed->substr(begin, end - begin));
      begin = end + 1;
    }
    return gpus;
  }
  const std::size_t count = io::names_in("/proc/driver/nvidia/gpus").size();
  for (std::size_t i = 0; i < count; ++i) gpus.push_back(std::to_string(i));
  return gpus;
}

void show_gpu(const std::string& gpu) {
  ::setenv(kVisibleGpus, gpu.c_str(), 1);
}

}  // namespace plenum::cli
