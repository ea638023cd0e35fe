#include "plenum/packing/open_packs.h"

#include <algorithm>
#include <bit>

#include "plenum/base/check.h"

namespace plenum::packing {
namespace {

constexpr std::int64_t kWordBits = 64;

std::size_t as_index(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

OpenPacks::OpenPacks(std::int64_t capacity, std::int64_t depth)
    : capacity_(capacity),
      depth_(depth),
      nodes_(1),
      groups_(as_index(capacity) + 1),
      occupied_(as_index(capacity) / kWordBits + 1) {}

std::int64_t OpenPacks::tightest_space(std::int64_t space) const {
  std::size_t word = as_index(space / kWordBits);
  if (word >= occupied_.size()) return capacity_ + 1;
  std::uint64_t bits = occupied_[word] >> (space % kWordBits) << (space % kWordBits);
  while (bits == 0) {
    if (++word == occupied_.size()) return capacity_ + 1;
    bits = occupied_[word];
  }
  return static_cast<std::int64_t>(word) * kWordBits + std::countr_zero(bits);
}

std::int64_t OpenPacks::roomiest_space() const {
  for (std::size_t word = occupied_.size(); word-- > 0;) {
    if (occupied_[word] != 0) {
      return static_cast<std::int64_t>(word) * kWordBits + kWordBits - 1 - std::countl_zero(occupied_[word]);
    }
  }
  return 0;
}

const OpenPacks::Group& OpenPacks::group_with(std::int64_t space) const {
  const std::vector<Group>& groups = groups_[as_index(space)];
  base::check(!groups.empty(), "no pack is open with this space: {}", space);
  return groups.back();
}

void OpenPacks::extend(std::int64_t space, std::uint64_t num_packs, std::int64_t length,
                       std::int64_t repeat) {
  const PackId contents = group_with(space).contents;
  std::vector<Group>& groups = groups_[as_index(space)];
  base::check(num_packs <= groups.back().count, "a group holds fewer packs: {} < {}", groups.back().count,
              num_packs);
  groups.back().count -= num_packs;
  if (groups.back().count == 0) groups.pop_back();
  if (groups.empty()) occupied_[as_index(space / kWordBits)] &= ~(std::uint64_t{1} << (space % kWordBits));
  put(child(contents, length, repeat), num_packs, space - length * repeat);
}

void OpenPacks::open(std::uint64_t num_packs, std::int64_t length, std::int64_t repeat) {
  put(child(0, length, repeat), num_packs, capacity_ - length * repeat);
}

PackId OpenPacks::child(PackId parent, std::int64_t length, std::int64_t repeat) {
  for (; repeat > 0; --repeat) {
    const PackId latest = nodes_[parent].latest_child;
    if (latest == 0 || nodes_[latest].length != length) {
      nodes_[parent].latest_child = static_cast<PackId>(nodes_.size());
      nodes_.push_back({.parent = parent,
                        .latest_child = 0,
                        .length = static_cast<std::int32_t>(length),
                        .num_sequences = nodes_[parent].num_sequences + 1,
                        .num_closed = 0});
    }
    parent = nodes_[parent].latest_child;
  }
  return parent;
}

void OpenPacks::put(PackId contents, std::uint64_t num_packs, std::int64_t space) {
  if (space == 0 || nodes_[contents].num_sequences == depth_) {
    nodes_[contents].num_closed += num_packs;
    return;
  }
  std::vector<Group>& groups = groups_[as_index(space)];
  if (!groups.empty() && groups.back().contents == contents) {
    groups.back().count += num_packs;
  } else {
    groups.push_back({contents, num_packs});
  }
  occupied_[as_index(space / kWordBits)] |= std::uint64_t{1} << (space % kWordBits);
}

PackingPlan OpenPacks::plan() const {
  std::vector<std::uint64_t> num_packs(nodes_.size());
  for (std::size_t node = 0; node < nodes_.size(); ++node) num_packs[node] = nodes_[node].num_closed;
  for (const std::vector<Group>& groups : groups_) {
    for (const Group& group : groups) num_packs[group.contents] += group.count;
  }
  PackingPlan plan{.capacity = capacity_, .depth = depth_, .patterns = {}};
  for (PackId contents = 1; contents < nodes_.size(); ++contents) {
    if (num_packs[contents] == 0) continue;
    PackPattern pattern{.lengths = {}, .count = num_packs[contents]};
    pattern.lengths.reserve(as_index(nodes_[contents].num_sequences));
    for (PackId node = contents; node != 0; node = nodes_[node].parent)
      pattern.lengths.push_back(nodes_[node].length);
    std::reverse(pattern.lengths.begin(), pattern.lengths.end());
    plan.patterns.push_back(std::move(pattern));
  }
  return plan;
}

}  // namespace plenum::packing
