#include "plenum/packing/streaming.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <unordered_map>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/base/permutation.h"
#include "plenum/packing/sequence_ids.h"

namespace plenum::packing {
namespace {

std::size_t index_of(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

/// Stands for the number of packs where there is none to take: no sum with a count is smaller, none
/// overflows.
constexpr std::int32_t kNoPack = std::int32_t{1} << 30;

struct LengthsHash {
  std::size_t operator()(const std::vector<std::int32_t>& lengths) const {
    std::uint64_t hash = lengths.size();
    for (const std::int32_t length : lengths) {
      hash = (hash ^ static_cast<std::uint64_t>(length)) * 0x9E3779B97F4A7C15;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

/// Counts packs by what they hold.
class PatternCounts {
 public:
  void add(const StreamedPack& pack) {
    lengths_.clear();
    for (const StreamedSequence& sequence : pack)
      lengths_.push_back(static_cast<std::int32_t>(sequence.length));
    std::sort(lengths_.begin(), lengths_.end(), std::greater<>());
    ++counts_[lengths_];
  }

  /// In descending order of lengths, so that the plan does not depend on the hash.
  std::vector<PackPattern> patterns() const {
    std::vector<PackPattern> patterns;
    patterns.reserve(counts_.size());
    for (const auto& [lengths, count] : counts_) patterns.push_back({lengths, count});
    std::sort(patterns.begin(), patterns.end(),
              [](const PackPattern& a, const PackPattern& b) { return a.lengths > b.lengths; });
    return patterns;
  }

 private:
  std::unordered_map<std::vector<std::int32_t>, std::uint64_t, LengthsHash> counts_;
  std::vector<std::int32_t> lengths_;
};

}  // namespace

StreamingPacker::StreamingPacker(std::int64_t capacity, std::int64_t depth, std::int64_t max_open_packs)
    : capacity_(capacity),
      depth_(depth),
      max_open_packs_(max_open_packs),
      open_(index_of(capacity) + 1),
      num_with_space_(index_of(capacity) + 1),
      relief_(index_of(capacity) + 1, kNoPack) {
  base::check(capacity >= 1 && depth >= 1 && max_open_packs >= 1 && max_open_packs < kNoPack,
              "a streaming packer needs room: capacity={} depth={} open packs={}", capacity, depth,
              max_open_packs);
}

std::optional<StreamedPack> StreamingPacker::add(const StreamedSequence& sequence) {
  base::check(sequence.length >= 1 && sequence.length <= capacity_,
              "a sequence does not fit into a pack: length={} capacity={}", sequence.length, capacity_);
  OpenPack pack = take(choose_space(sequence.length));
  pack.sequences.push_back(sequence);
  pack.space -= sequence.length;
  if (pack.space == 0 || std::cmp_equal(pack.sequences.size(), depth_)) return std::move(pack.sequences);
  keep(std::move(pack));
  if (num_open_ <= max_open_packs_) return std::nullopt;
  const auto fullest = std::find_if(num_with_space_.begin(), num_with_space_.end(),
                                    [](std::int32_t number) { return number > 0; });
  return take(fullest - num_with_space_.begin()).sequences;
}

/// The space whose packs should take `length`; the capacity stands for a new pack. Moving a pack from space g
/// to h > 0 changes the sum of squares by 2 (N(h) - N(g)) + 2; filling one up, by 1 - 2 N(g); opening one, by
/// 2 N(h) + 1. Of equals, filling up comes first, then the tightest space.
std::int64_t StreamingPacker::choose_space(std::int64_t length) const {
  const std::int32_t* counts = num_with_space_.data();
  const std::int32_t* relief = relief_.data() + length;
  const std::int64_t num_spaces = capacity_ - length;
  if (num_spaces == 0) return capacity_;
  // Two plain loops, a minimum and a search, because compilers vectorise the first one.
  std::int32_t least = kNoPack;
  for (std::int64_t left = 1; left < num_spaces; ++left) least = std::min(least, counts[left] + relief[left]);

  const std::int64_t open_change = 2 * std::int64_t{counts[num_spaces]} + 1;
  const std::int64_t fill_change = counts[length] > 0 ? 1 - 2 * std::int64_t{counts[length]} : kNoPack;
  const std::int64_t move_change = 2 * std::int64_t{least} + 2;
  if (fill_change <= std::min(open_change, move_change)) return length;
  if (open_change <= move_change) return capacity_;
  std::int64_t left = 1;
  while (counts[left] + relief[left] != least) ++left;
  return length + left;
}

/// An open pack with exactly `space` left, now owned by the caller; a new one for the whole capacity.
StreamingPacker::OpenPack StreamingPacker::take(std::int64_t space) {
  if (space == capacity_) return {.space = capacity_, .sequences = {}};
  std::vector<OpenPack>& packs = open_[index_of(space)];
  OpenPack pack = std::move(packs.back());
  packs.pop_back();
  count(space, -1);
  return pack;
}

void StreamingPacker::keep(OpenPack pack) {
  count(pack.space, 1);
  open_[index_of(pack.space)].push_back(std::move(pack));
}

void StreamingPacker::count(std::int64_t space, std::int32_t change) {
  std::int32_t& number = num_with_space_[index_of(space)];
  number += change;
  relief_[index_of(space)] = number > 0 ? -number : kNoPack;
  num_open_ += change;
}

std::vector<StreamedPack> StreamingPacker::finish() {
  // Fullest first, each into the joined pack with the least space that suffices.
  StreamingPacker joined(capacity_, depth_, max_open_packs_);
  std::vector<StreamedPack> finished;
  for (std::vector<OpenPack>& packs : open_) {
    for (const OpenPack& part : packs) {
      OpenPack pack = joined.take(joined.space_to_join(part));
      pack.space -= capacity_ - part.space;
      pack.sequences.insert(pack.sequences.end(), part.sequences.begin(), part.sequences.end());
      if (pack.space == 0) {
        finished.push_back(std::move(pack.sequences));
      } else {
        joined.keep(std::move(pack));
      }
    }
  }
  for (std::vector<OpenPack>& packs : joined.open_) {
    for (OpenPack& pack : packs) finished.push_back(std::move(pack.sequences));
  }
  *this = StreamingPacker(capacity_, depth_, max_open_packs_);
  return finished;
}

/// The least space whose latest pack can take all of `part`; the capacity stands for a new pack.
std::int64_t StreamingPacker::space_to_join(const OpenPack& part) const {
  for (std::int64_t space = capacity_ - part.space; space < capacity_; ++space) {
    const std::vector<OpenPack>& packs = open_[index_of(space)];
    if (packs.empty()) continue;
    const std::size_t num_sequences = packs.back().sequences.size() + part.sequences.size();
    if (std::cmp_less_equal(num_sequences, depth_)) return space;
  }
  return capacity_;
}

PackingPlan pack_streaming(const PackingProblem& problem, const StreamingOptions& options) {
  check_problem(problem);
  base::require(options.max_open_packs >= 1, "the number of open packs must be at least 1: {}",
                options.max_open_packs);
  const SequenceIds ids(problem.histogram);
  const base::KeyedPermutation arrival(base::RandomFunction(options.seed, base::Purpose::Order), 0,
                                       ids.num_sequences());
  StreamingPacker packer(problem.capacity, problem.depth, options.max_open_packs);
  PatternCounts counts;
  for (std::uint64_t turn = 0; turn < ids.num_sequences(); ++turn) {
    const std::uint64_t id = arrival(turn);
    if (const auto closed = packer.add({id, ids.length_of(id)})) counts.add(*closed);
  }
  for (const StreamedPack& pack : packer.finish()) counts.add(pack);
  return {.capacity = problem.capacity, .depth = problem.depth, .patterns = counts.patterns()};
}

}  // namespace plenum::packing
