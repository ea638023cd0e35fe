#include "plenum/batch/group_label.h"
#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/device/reduce.cuh"
#include "plenum/kernels/cuda/rows/group_loss.h"
#include "plenum/tensor/cuda_check.h"

// M rows in groups, C columns: a few numbers for each token at most. A warp looks at each row; the one at
// the first row of a group does the group, in double precision.

namespace plenum::kernels::cuda {
namespace {

using batch::GroupLabel;

constexpr int kRowsOfBlock = 4;

unsigned num_blocks(std::int64_t rows) {
  return static_cast<unsigned>((rows + kRowsOfBlock - 1) / kRowsOfBlock);
}

__device__ bool is_first(std::int32_t label) {
  return label != -1 && (label & GroupLabel::kFirst) != 0;
}

struct MaximumOfDoubles {
  __device__ double operator()(double a, double b) const { return fmax(a, b); }
};

/// A group whose rows the lanes of a warp share out: lane i has row begin + i, begin + i + 32, ...
struct WarpGroup {
  const std::int32_t* label_M;
  std::int64_t begin;
  std::int64_t end;
  int columns;

  /// That begins with a row.
  __device__ WarpGroup(const std::int32_t* labels, std::int64_t first_row, std::int64_t rows, int num_columns)
      : label_M(labels), begin(first_row), end(rows), columns(num_columns) {
    for (std::int64_t next = begin + 1; next < rows; next += kWarpSize) {
      const std::int64_t row = next + lane();
      const bool is_behind = row < rows && (label_M[row] == -1 || is_first(label_M[row]));
      const unsigned behind = __ballot_sync(kAllLanes, is_behind);
      if (behind == 0) continue;
      end = next + __ffs(static_cast<int>(behind)) - 1;
      break;
    }
  }

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kWarpSize; }
  __device__ std::int64_t place(std::int64_t row, int column) const { return row * columns + column; }
  /// GroupLabel::is_answer, as a number.
  __device__ double is_answer(std::int64_t row, int column) const { return (label_M[row] >> column) & 1; }

  /// Of a column over the group, in every lane.
  __device__ double log_sum_exp(const __nv_bfloat16* logits_MC, int column) const {
    double maximum = -INFINITY;
    for (std::int64_t row = begin + lane(); row < end; row += kWarpSize)
      maximum = fmax(maximum, double{__bfloat162float(logits_MC[place(row, column)])});
    maximum = reduce_warp(maximum, MaximumOfDoubles{});
    double sum = 0;
    for (std::int64_t row = begin + lane(); row < end; row += kWarpSize)
      sum += exp(double{__bfloat162float(logits_MC[place(row, column)])} - maximum);
    return maximum + log(reduce_warp(sum, Sum{}));
  }
};

__device__ std::int64_t own_row() {
  return std::int64_t{blockIdx.x} * kRowsOfBlock + threadIdx.x / kWarpSize;
}

__global__ void __launch_bounds__(kRowsOfBlock* kWarpSize)
    group_losses(const __nv_bfloat16* __restrict__ logits_MC, const std::int32_t* __restrict__ label_M,
                 std::int64_t rows, int columns, float* __restrict__ loss_M) {
  const std::int64_t first = own_row();
  if (first >= rows) return;
  double loss = 0;
  if (is_first(label_M[first])) {
    const WarpGroup group(label_M, first, rows, columns);
    for (int column = 0; column < columns; ++column) {
      double of_answer = 0;
      for (std::int64_t row = first + WarpGroup::lane(); row < group.end; row += kWarpSize) {
        if (group.is_answer(row, column) > 0)
          of_answer += double{__bfloat162float(logits_MC[group.place(row, column)])};
      }
      loss += group.log_sum_exp(logits_MC, column) - reduce_warp(of_answer, Sum{});
    }
  }
  if (WarpGroup::lane() == 0) loss_M[first] = static_cast<float>(loss / columns);
}

/// Gradients may take the place of logits: a warp has read a column of its group before it writes it, and
/// each logit again just before its gradient.
__global__ void __launch_bounds__(kRowsOfBlock* kWarpSize)
    group_gradients(const __nv_bfloat16* logits_MC, const std::int32_t* __restrict__ label_M,
                    const double* __restrict__ scale_1, std::int64_t rows, int columns,
                    __nv_bfloat16* dlogits_MC) {
  const std::int64_t first = own_row();
  if (first >= rows) return;
  if (label_M[first] == -1) {
    for (int column = WarpGroup::lane(); column < columns; column += kWarpSize)
      dlogits_MC[first * columns + column] = __float2bfloat16_rn(0);
    return;
  }
  if (!is_first(label_M[first])) return;
  const WarpGroup group(label_M, first, rows, columns);
  const double scale = *scale_1 / columns;
  for (int column = 0; column < columns; ++column) {
    const double lse = group.log_sum_exp(logits_MC, column);
    for (std::int64_t row = first + WarpGroup::lane(); row < group.end; row += kWarpSize) {
      const std::int64_t place = group.place(row, column);
      const double share =
          exp(double{__bfloat162float(logits_MC[place])} - lse) - group.is_answer(row, column);
      dlogits_MC[place] = __float2bfloat16_rn(static_cast<float>(scale * share));
    }
  }
}

}  // namespace

void group_loss_forward(const tensor::Stream& stream, const GroupLossForward& args) {
  const std::int64_t rows = args.logits_MC.size(0);
  if (rows == 0) return;
  group_losses<<<num_blocks(rows), kRowsOfBlock * kWarpSize, 0, stream.cuda().handle()>>>(
      bfloat16_data(args.logits_MC), args.label_M.data<std::int32_t>(), rows,
      static_cast<int>(args.logits_MC.size(1)), args.loss_M.data<float>());
  tensor::check_cuda(cudaGetLastError(), "compute the losses of groups");
}

void group_loss_backward(const tensor::Stream& stream, const GroupLossBackward& args) {
  const std::int64_t rows = args.logits_MC.size(0);
  if (rows == 0) return;
  group_gradients<<<num_blocks(rows), kRowsOfBlock * kWarpSize, 0, stream.cuda().handle()>>>(
      bfloat16_data(args.logits_MC), args.label_M.data<std::int32_t>(), args.scale_1.data<double>(), rows,
      static_cast<int>(args.logits_MC.size(1)), bfloat16_data(args.dlogits_MC));
  tensor::check_cuda(cudaGetLastError(), "compute the gradients of groups");
}

}  // namespace plenum::kernels::cuda
