#pragma once

#include <cstdint>
#include <vector>

namespace plenum::bench {

/// A matrix product that cuBLASLt was asked for, as a part of a linear map of `tokens` rows.
struct ProductCall {
  enum class Part { Forward, InputGradient, WeightGradient };

  Part part = Part::Forward;
  std::int64_t tokens = 0;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;

  double flops() const {
    return 2.0 * static_cast<double>(tokens) * static_cast<double>(inputs) * static_cast<double>(outputs);
  }
};

// The library's kernels do not say what they multiply. So the linker leads calls of cublasLtMatmul through
// this file (--wrap), which notes their sizes: kernels come in the order of the calls.

void begin_product_calls();
std::vector<ProductCall> end_product_calls();

}  // namespace plenum::bench
