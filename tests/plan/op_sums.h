#pragma once

#include <numeric>
#include <vector>

#include "plenum/plan/op.h"

namespace plenum::test {

inline double flops_of(const std::vector<plan::Op>& ops) {
  return std::accumulate(ops.begin(), ops.end(), 0.0,
                         [](double sum, const plan::Op& op) { return sum + op.count * op.flops; });
}

inline double bytes_of(const std::vector<plan::Op>& ops) {
  return std::accumulate(ops.begin(), ops.end(), 0.0,
                         [](double sum, const plan::Op& op) { return sum + op.count * op.bytes; });
}

}  // namespace plenum::test
