#include <algorithm>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/architecture/source_tree.h"

namespace plenum::architecture {
namespace {

// The level of each folder: a folder includes itself and folders of a strictly lower level. Folders that do
// not exist yet stand here so that their place is known.
const std::map<std::string, int> kLevels = {
    {"base", 0},    {"tensor", 1},   {"trace", 1},     {"io", 1},       {"packing", 1},  {"batch", 1},
    {"score", 1},   {"control", 2},  {"report", 2},    {"schedule", 2}, {"describe", 2}, {"workspace", 2},
    {"kernels", 3}, {"comm", 3},     {"memory", 3},    {"model", 4},    {"plan", 4},     {"data", 4},
    {"optim", 4},   {"pipeline", 5}, {"calibrate", 5}, {"train", 6},    {"cli", 7},
};

// Folders that stand alone, usable as libraries by other projects: the only folders they may include.
const std::map<std::string, std::set<std::string>> kPure = {
    {"packing", {"base"}},
    {"score", {"base"}},
    {"batch", {"base"}},
    {"report", {"base", "io", "trace"}},
    {"schedule", {"base", "trace"}},
    {"describe", {"base", "batch", "tensor"}},
    {"workspace", {"base", "batch", "tensor"}},
    {"memory", {"base", "batch", "tensor", "schedule", "describe", "workspace"}},
    {"plan", {"base", "batch", "tensor", "trace", "packing", "schedule", "describe", "workspace", "memory"}},
};

// Headers that may appear only below the given paths.
const std::vector<std::pair<std::regex, std::vector<std::string>>> kConfinedHeaders = {
    {std::regex("<mpi\\.h>"), {"plenum/comm/mpi/"}},
    {std::regex("<nccl\\.h>"), {"plenum/comm/"}},
    {std::regex("<(cuda|cublas|cudnn|cusolver|nvtx|cub/|mma|cooperative_groups).*>"),
     {"plenum/kernels/cuda/", "plenum/tensor/cuda_", "plenum/comm/nccl"}},
    {std::regex("<CLI/.*>"), {"plenum/cli/"}},
    {std::regex("<toml\\+\\+/.*>"), {"plenum/io/"}},
    {std::regex("<simdjson\\.h>"), {"plenum/io/", "plenum/data/", "plenum/report/"}},
    {std::regex("<utf8proc\\.h>"), {"plenum/data/"}},
    {std::regex("<(zlib|zstd|xxhash)\\.h>"), {"plenum/io/"}},
    {std::regex("<sodium\\.h>"), {"plenum/control/"}},
    {std::regex("<nlohmann/.*>"),
     {"plenum/io/", "plenum/control/", "plenum/schedule/", "plenum/data/", "plenum/cli/", "plenum/model/",
      "plenum/train/", "plenum/report/"}},
    {std::regex("<iostream>"), {}},
};

std::string folder_of(const std::string& path) {
  const std::size_t start = path.find('/') + 1;
  return path.substr(start, path.find('/', start) - start);
}

bool lies_below(const std::string& path, const std::vector<std::string>& prefixes) {
  for (const std::string& prefix : prefixes) {
    if (path.starts_with(prefix)) return true;
  }
  return false;
}

TEST(Layers, EveryFolderHasALevel) {
  for (const SourceFile& file : source_files("plenum")) {
    EXPECT_TRUE(kLevels.contains(folder_of(file.path)))
        << file.path << ": add the folder to kLevels and to docs/design.md";
  }
}

TEST(Layers, AFolderIncludesOnlyLowerLevels) {
  const std::regex include("^\\s*#\\s*include\\s+\"([^\"]+)\"");
  int edges = 0;
  for (const SourceFile& file : source_files("plenum")) {
    const std::string folder = folder_of(file.path);
    for (const std::string& line : file.lines) {
      std::smatch match;
      if (!std::regex_search(line, match, include)) continue;
      const std::string target = match[1];
      if (target == "plenum_build_info.h") continue;
      ASSERT_TRUE(target.starts_with("plenum/"))
          << file.path << ": include by the path from the root: " << target;
      const std::string other = folder_of(target);
      ++edges;
      if (other == folder) continue;
      EXPECT_LT(kLevels.at(other), kLevels.at(folder)) << file.path << " includes " << target;
      if (const auto pure = kPure.find(folder); pure != kPure.end()) {
        EXPECT_TRUE(pure->second.contains(other))
            << file.path << " includes " << target << "; " << folder << " stands alone";
      }
    }
  }
  EXPECT_GT(edges, 20) << "the includes were not found at all";
}

// The rooms of the large folders. A room includes rooms that stand before it; what lies beside them belongs
// to none and may include all.
const std::map<std::string, std::vector<std::string>> kRooms = {
    {"plenum/schedule/", {"core", "text", "simulate", "check", "generate", "fill"}},
    {"plenum/data/", {"text", "tokenizer", "corpus", "batches", "tasks"}},
    {"plenum/kernels/cuda/", {"device", "rows", "product", "attention"}},
};

/// The position of the room that a path lies in; none where the path lies in no room of that folder.
std::optional<std::size_t> room_index(const std::string& path, const std::string& folder,
                                      const std::vector<std::string>& rooms) {
  if (!path.starts_with(folder)) return std::nullopt;
  const std::size_t end = path.find('/', folder.size());
  if (end == std::string::npos) return std::nullopt;
  const auto room = std::find(rooms.begin(), rooms.end(), path.substr(folder.size(), end - folder.size()));
  EXPECT_NE(room, rooms.end()) << path << ": add the room to kRooms";
  return static_cast<std::size_t>(room - rooms.begin());
}

TEST(Layers, ARoomIncludesOnlyRoomsBeforeIt) {
  const std::regex include("^\\s*#\\s*include\\s+\"([^\"]+)\"");
  int edges = 0;
  for (const SourceFile& file : source_files("plenum")) {
    for (const auto& [folder, rooms] : kRooms) {
      const std::optional<std::size_t> room = room_index(file.path, folder, rooms);
      if (!room) continue;
      for (const std::string& line : file.lines) {
        std::smatch match;
        if (!std::regex_search(line, match, include)) continue;
        const std::optional<std::size_t> other = room_index(match[1], folder, rooms);
        if (!other) continue;
        ++edges;
        EXPECT_LE(*other, *room) << file.path << " includes " << match[1];
      }
    }
  }
  EXPECT_GT(edges, 100) << "the includes were not found at all";
}

TEST(Layers, HeadersOfLibrariesStayInTheirFolders) {
  const std::regex include("^\\s*#\\s*include\\s+(<[^>]+>)");
  for (const SourceFile& file : source_files("plenum")) {
    for (const std::string& line : file.lines) {
      std::smatch match;
      if (!std::regex_search(line, match, include)) continue;
      for (const auto& [header, allowed] : kConfinedHeaders) {
        if (!std::regex_match(match[1].str(), header)) continue;
        EXPECT_TRUE(lies_below(file.path, allowed)) << file.path << " includes " << match[1];
      }
    }
  }
}

}  // namespace
}  // namespace plenum::architecture
