#pragma once

#include <map>
#include <string>

#include "plenum/tensor/stream.h"

namespace plenum::kernels {

/// Which algorithms a stream's matrix products run with. On the GPU they are found by measuring when a
/// product of a kind first comes, and another first one may lead to another order of sums: a run that is to
/// resume with the same bytes keeps these and gives them to the stream it resumes with, which also need not
/// measure again. Empty on the CPU, which has one algorithm.
struct MatmulChoices {
  /// The library with its version and the GPU they were measured with. Elsewhere they mean nothing.
  std::string measured_with;
  /// From a product's description to its algorithm. Both are printable and without spaces around them.
  std::map<std::string, std::string> algorithms;

  friend bool operator==(const MatmulChoices&, const MatmulChoices&) = default;
};

/// What has been chosen so far.
MatmulChoices matmul_choices(const tensor::Stream& stream);

/// Lets the stream use these and measure only what is not among them. Choices that were measured with
/// another library or GPU are left aside. Returns whether these were taken.
bool use_matmul_choices(const tensor::Stream& stream, const MatmulChoices& choices);

}  // namespace plenum::kernels
