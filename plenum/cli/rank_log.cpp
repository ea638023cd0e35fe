#include "plenum/cli/rank_log.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "plenum/train/run_directory.h"

namespace plenum::cli {

RankLog::RankLog(const std::string& run_directory, const control::Launch& launch) {
  const bool is_first = launch.is_alone() || launch.rank.index() == 0;
  if (is_first || run_directory.empty() || launch.launcher == control::Launcher::Plenum) return;
  const std::string logs = train::RunPaths(run_directory).logs;
  std::error_code ignored;
  std::filesystem::create_directories(logs, ignored);
  file_.reset(std::fopen(fmt::format("{}/rank-{}.log", logs, launch.rank.value).c_str(), "ae"));
}

}  // namespace plenum::cli
