#pragma once

#include <cstdint>
#include <vector>

#include "plenum/describe/parameter_table.h"

namespace plenum::describe {

/// The weights and biases of norms among the elements of a table, one behind another. Where products read
/// weights rounded, passes read these alone as the optimizer keeps them.
class NormElements {
 public:
  using ElementRange = ParameterTable::ElementRange;

  /// Elements that follow each other in the flat buffers, with the gaps that align tensors.
  struct Run {
    ElementRange elements;   ///< of the flat buffers
    std::int64_t begin = 0;  ///< of the first among those of norms
  };

  explicit NormElements(const ParameterTable& table);

  std::int64_t count() const { return count_; }
  const std::vector<Run>& runs() const { return runs_; }
  /// What of them lies in a range of the flat buffers.
  std::vector<Run> within(const ElementRange& range) const;
  /// How many of them lie there.
  std::int64_t count_within(const ElementRange& range) const;

 private:
  std::vector<Run> runs_;
  std::int64_t count_ = 0;
};

}  // namespace plenum::describe
