#include <cuda_bf16.h>

#include "plenum/kernels/cuda/product/plain_matmul.h"
#include "plenum/tensor/cuda_check.h"

namespace plenum::kernels::cuda {
namespace {

constexpr int kTile = 16;

/// An operand as a grid of elements: element (i, j) lies at i * row + j * column.
struct Grid {
  const __nv_bfloat16* data = nullptr;
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::int64_t batch = 0;  ///< from one matrix to the next
};

Grid grid_of(const MatmulOperand& operand) {
  const auto* const data = reinterpret_cast<const __nv_bfloat16*>(operand.data);
  if (operand.is_transposed) return {data, 1, operand.stride, operand.batch_stride};
  return {data, operand.stride, 1, operand.batch_stride};
}

struct PlainMatmul {
  std::int64_t m, n, k;
  Grid a, b;
  std::int64_t c_stride, c_batch_stride;
  bool accumulates;
  const __nv_bfloat16* bias;
};

__device__ float value_of(float value) {
  return value;
}
__device__ float value_of(__nv_bfloat16 value) {
  return __bfloat162float(value);
}
__device__ void store(float value, float* to) {
  *to = value;
}
__device__ void store(float value, __nv_bfloat16* to) {
  *to = __float2bfloat16(value);
}

/// One thread makes one element of C, from the first term of its sum to the last. Each pass of a block loads
/// a tile of both factors.
template <typename Element>
__global__ void plain_matmul_kernel(PlainMatmul args, Element* c) {
  __shared__ float a_tile[kTile][kTile + 1];
  __shared__ float b_tile[kTile][kTile + 1];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const std::int64_t row = std::int64_t{blockIdx.x} * kTile + y;
  const std::int64_t column = std::int64_t{blockIdx.y} * kTile + x;
  const std::int64_t product = blockIdx.z;
  const __nv_bfloat16* const a = args.a.data + product * args.a.batch;
  const __nv_bfloat16* const b = args.b.data + product * args.b.batch;
  float sum = 0;
  for (std::int64_t begin = 0; begin < args.k; begin += kTile) {
    const bool has_a = row < args.m && begin + x < args.k;
    const bool has_b = column < args.n && begin + y < args.k;
    a_tile[y][x] = has_a ? value_of(a[row * args.a.row + (begin + x) * args.a.column]) : 0.0F;
    b_tile[y][x] = has_b ? value_of(b[(begin + y) * args.b.row + column * args.b.column]) : 0.0F;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += a_tile[y][i] * b_tile[i][x];
    __syncthreads();
  }
  if (row >= args.m || column >= args.n) return;
  const std::int64_t place = product * args.c_batch_stride + row * args.c_stride + column;
  if (args.accumulates) sum += value_of(c[place]);
  if (args.bias != nullptr) sum += value_of(args.bias[column]);
  store(sum, c + place);
}

template <typename Element>
void launch(const tensor::Stream& stream, const PlainMatmul& args, std::int64_t num_products, void* c) {
  const auto rows = static_cast<unsigned>((args.m + kTile - 1) / kTile);
  const auto columns = static_cast<unsigned>((args.n + kTile - 1) / kTile);
  plain_matmul_kernel<<<dim3(rows, columns, static_cast<unsigned>(num_products)), dim3(kTile, kTile), 0,
                        stream.cuda().handle()>>>(args, static_cast<Element*>(c));
  tensor::check_cuda(cudaGetLastError(), "multiply matrices");
}

}  // namespace

void plain_matmul(const tensor::Stream& stream, const Matmul& args) {
  const PlainMatmul plain = {
      .m = args.m,
      .n = args.n,
      .k = args.k,
      .a = grid_of(args.a),
      .b = grid_of(args.b),
      .c_stride = args.c_stride,
      .c_batch_stride = args.c_batch_stride,
      .accumulates = args.accumulate == Accumulate::Yes,
      .bias = reinterpret_cast<const __nv_bfloat16*>(args.bias),
  };
  if (args.c_dtype == tensor::DType::Float32) return launch<float>(stream, plain, args.num_products, args.c);
  launch<__nv_bfloat16>(stream, plain, args.num_products, args.c);
}

}  // namespace plenum::kernels::cuda
