#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plenum/packing/plan.h"

namespace plenum::packing {

/// A sequence that arrives at a StreamingPacker.
struct StreamedSequence {
  std::uint64_t id = 0;
  std::int64_t length = 0;
};

using StreamedPack = std::vector<StreamedSequence>;

/// Packs sequences as they arrive, without knowing what follows, holding at most `max_open_packs` packs open.
///
/// The rule is Sum-of-Squares (Csirik, Johnson, Kenyon, Orlin, Shor, Weber: On the Sum-of-Squares Algorithm
/// for Bin Packing, J. ACM 2006): with N(g) open packs of space g, each sequence goes where the sum of N(g)^2
/// becomes smallest, which keeps packs of every space at hand. When too many are open the fullest is closed;
/// finish() joins what is still open by best fit. Measured with 1024 open packs, random order, unlimited
/// depth: 99.85% of Wikipedia-512 and 98.4% of SQuAD-384 is filled (bounded best fit: 99.3% and 94.3%).
class StreamingPacker {
 public:
  /// capacity, depth and max_open_packs at least 1.
  StreamingPacker(std::int64_t capacity, std::int64_t depth, std::int64_t max_open_packs);

  /// Places a sequence of 1 to capacity tokens. Returns the pack that this closed, if any.
  std::optional<StreamedPack> add(const StreamedSequence& sequence);

  /// Closes all open packs, joined where they fit together. The packer is empty afterwards.
  std::vector<StreamedPack> finish();

 private:
  struct OpenPack {
    std::int64_t space = 0;
    StreamedPack sequences;
  };

  std::int64_t choose_space(std::int64_t length) const;
  std::int64_t space_to_join(const OpenPack& part) const;
  OpenPack take(std::int64_t space);
  void keep(OpenPack pack);
  void count(std::int64_t space, std::int32_t change);

  std::int64_t capacity_;
  std::int64_t depth_;
  std::int64_t max_open_packs_;
  std::int64_t num_open_ = 0;
  std::vector<std::vector<OpenPack>> open_;  ///< by space; the latest is used first
  std::vector<std::int32_t> num_with_space_;
  std::vector<std::int32_t> relief_;  ///< by space: minus num_with_space_, or a large number where that is 0
};

struct StreamingOptions {
  std::int64_t max_open_packs = 1024;
  std::uint64_t seed = 0;
};

/// Packs the sequences of a histogram as if they arrived in the random order that `seed` names, through a
/// StreamingPacker. Costs O(n * capacity) for n sequences. Throws UserError if the problem cannot be packed.
PackingPlan pack_streaming(const PackingProblem& problem, const StreamingOptions& options);

}  // namespace plenum::packing
