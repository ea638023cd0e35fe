#include "plenum/data/corpus/duplicates.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <filesystem>
#include <span>
#include <vector>

#include "plenum/base/parallel_for.h"
#include "plenum/io/file.h"
#include "plenum/io/scatter_file.h"

namespace plenum::data {
namespace {

constexpr std::uint64_t kHashesPerGroup = std::uint64_t{1} << 16;  // fit into a core's own cache
constexpr int kMostGroupBits = 16;

std::span<const std::uint64_t> as_hashes(const io::MappedFile& file) {
  return {reinterpret_cast<const std::uint64_t*>(file.bytes().data()),
          file.bytes().size() / sizeof(std::uint64_t)};
}

}  // namespace

std::uint64_t count_duplicates(const std::string& path, std::size_t num_threads) {
  const io::MappedFile file(path);
  const std::span<const std::uint64_t> hashes = as_hashes(file);
  const int group_bits =
      std::clamp(static_cast<int>(std::bit_width(hashes.size() / kHashesPerGroup)), 1, kMostGroupBits);
  const auto group_of = [&](std::uint64_t hash) {
    return static_cast<std::size_t>(hash >> (64 - group_bits));
  };
  std::vector<std::uint64_t> group_sizes(std::size_t{1} << group_bits);
  for (const std::uint64_t hash : hashes) ++group_sizes[group_of(hash)];

  const std::string grouped_path = path + ".grouped";
  io::ScatterFile grouped(grouped_path, "", sizeof(std::uint64_t), group_sizes);
  for (const std::uint64_t hash : hashes) {
    grouped.append(group_of(hash), std::string_view(reinterpret_cast<const char*>(&hash), sizeof hash));
  }
  grouped.flush();

  std::atomic<std::uint64_t> duplicates = 0;
  {
    const io::MappedFile grouped_file(grouped_path);
    std::vector<std::span<const std::uint64_t>> groups;
    std::span<const std::uint64_t> rest = as_hashes(grouped_file);
    for (const std::uint64_t size : group_sizes) {
      groups.push_back(rest.first(size));
      rest = rest.subspan(size);
    }
    base::parallel_for(groups.size(), num_threads, [&](std::size_t index) {
      std::vector<std::uint64_t> group(groups[index].begin(), groups[index].end());
      std::sort(group.begin(), group.end());
      duplicates += static_cast<std::uint64_t>(group.end() - std::unique(group.begin(), group.end()));
    });
  }
  std::filesystem::remove(grouped_path);
  return duplicates;
}

}  // namespace plenum::data
