#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/device/gelu.cuh"
#include "plenum/kernels/cuda/rows/column_sums.cuh"
#include "plenum/kernels/cuda/rows/gelu_gradient.h"

namespace plenum::kernels::cuda {
namespace {

/// x *= gelu'(u). What is summed is not yet rounded.
template <bool kIsAligned>
struct GeluGradient {
  static constexpr int kRowsInFlight = 2;
  struct Loaded {
    PackedVector x;
    PackedVector u;
  };
  const __nv_bfloat16* u;
  __nv_bfloat16* x;
  int num_columns;

  __device__ Loaded load(std::int64_t row, int column) const {
    return {load_packed<kIsAligned>(x + row * num_columns, column, num_columns),
            load_packed<kIsAligned>(u + row * num_columns, column, num_columns)};
  }
  __device__ FloatVector finish(std::int64_t row, int column, const Loaded& loaded) const {
    const FloatVector inputs = unpack(loaded.u);
    FloatVector values = unpack(loaded.x);
#pragma unroll
    for (int i = 0; i < kVectorWidth; ++i) values[i] *= gelu_derivative(inputs[i]);
    store_vector<kIsAligned>(x + row * num_columns, column, num_columns, values);
    return values;
  }
};

}  // namespace

void multiply_gelu_derivative(const tensor::Stream& stream, const tensor::ConstTensorView& u,
                              const tensor::TensorView& x, float* total) {
  const auto width = static_cast<int>(x.size(1));
  const auto add = [&](const auto& rows) { add_column_sums_of(stream, rows, x.size(0), width, total); };
  if (are_rows_aligned(width, x, u))
    return add(GeluGradient<true>{bfloat16_data(u), bfloat16_data(x), width});
  add(GeluGradient<false>{bfloat16_data(u), bfloat16_data(x), width});
}

}  // namespace plenum::kernels::cuda
