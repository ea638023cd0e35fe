#include "plenum/train/shared_directory.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <random>
#include <span>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"

namespace plenum::train {
namespace {

constexpr comm::Tag kName = 0;
constexpr comm::Tag kSeen = 1;

bool appears(const std::string& path, std::chrono::seconds patience) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  while (!io::path_exists(path)) {
    if (Clock::now() - begin > patience) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace

void require_shared_directory(const std::string& directory, comm::Communicator& ranks,
                              std::chrono::seconds patience) {
  // A number that no file of another run has.
  std::array<std::int64_t, 1> number{static_cast<std::int64_t>(std::random_device()())};
  ranks.start_broadcast(comm::elements_of(std::span<std::int64_t>(number)), 0, kName).wait();
  const std::string path = fmt::format("{}/.shared-{}", directory, number.front());
  std::string error;
  if (ranks.index() == 0) {
    try {
      io::write_file(path, "");
    } catch (const base::UserError& failure) {
      error = failure.what();
    }
  }
  // The others look once the file is there.
  std::array<std::int64_t, 1> is_written{error.empty() ? 1 : 0};
  ranks.start_broadcast(comm::elements_of(std::span<std::int64_t>(is_written)), 0, kName).wait();
  std::vector<std::int64_t> who_sees(ranks.size());
  if (is_written.front() != 0) who_sees[ranks.index()] = appears(path, patience) ? 1 : 0;
  ranks.start_all_reduce(comm::elements_of(std::span(who_sees)), kSeen).wait();
  if (ranks.index() == 0) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  base::require(error.empty(), "{}", error);
  base::require(is_written.front() != 0, "the first process cannot write into its --run directory");
  for (std::size_t member = 0; member < who_sees.size(); ++member) {
    base::require(who_sees[member] != 0,
                  "rank {} does not see the run directory of rank 0: --run must be a directory that all "
                  "machines share",
                  ranks.rank_of(member).value);
  }
}

}  // namespace plenum::train
