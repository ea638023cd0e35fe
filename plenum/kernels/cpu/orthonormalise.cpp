#include "plenum/kernels/cpu/orthonormalise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "plenum/kernels/cpu/for_vectors.h"
#include "plenum/kernels/cpu/gemm.h"
#include "plenum/kernels/cpu/vector.h"

namespace plenum::kernels::cpu {
namespace {

constexpr std::int64_t kPanel = kOrthonormalPanel;
constexpr std::int64_t kRowsOfTask = 128;

float dot(const float* a, const float* b, std::int64_t count) {
  Vec sums = {};
  for_vectors(0, count, [&](std::int64_t i, auto lanes) {
    sums += load_first(a + i, lanes) * load_first(b + i, lanes);
  });
  return sum(sums);
}

/// Divides a row by its length.
void normalise(float* row, std::int64_t row_index, std::int64_t count) {
  const float length = std::sqrt(dot(row, row, count));
  if (!(length > 0) || !std::isfinite(length)) {
    std::fill_n(row, count, 0.0F);
    row[row_index] = 1;
    return;
  }
  for_vectors(0, count, [&](std::int64_t i, auto lanes) {
    store_first(row + i, load_first(row + i, lanes) / length, lanes);
  });
}

void take_away(const float* unit, float* row, std::int64_t count) {
  const float part = dot(unit, row, count);
  for_vectors(0, count, [&](std::int64_t i, auto lanes) {
    store_first(row + i, load_first(row + i, lanes) - load_first(unit + i, lanes) * part, lanes);
  });
}

/// Makes `count` rows from `first` on orthonormal by modified Gram-Schmidt, so many times over: nearly
/// parallel rows are orthogonal only the second time, and what is taken away from others must be.
void orthonormalise_panel(float* x_NN, std::int64_t N, std::int64_t first, std::int64_t count,
                          int num_times) {
  for (int time = 0; time < num_times; ++time) {
    for (std::int64_t j = first; j < first + count; ++j) {
      normalise(x_NN + j * N, j, N);
      for (std::int64_t i = j + 1; i < first + count; ++i) take_away(x_NN + j * N, x_NN + i * N, N);
    }
  }
}

/// Takes the rows of a panel, U, away from `count` rows behind it: X - (X U^T) U.
void take_panel_away(const float* u_PN, std::int64_t num_units, float* x_CN, std::int64_t count,
                     std::int64_t N, std::span<std::byte> scratch) {
  alignas(64) std::array<float, kRowsOfTask * kPanel> parts_CP;
  gemm({.m = count,
        .n = num_units,
        .k = N,
        .a = {.data = x_CN, .stride = N},
        .b = {.data = u_PN, .stride = N, .is_transposed = true},
        .c = parts_CP.data(),
        .c_stride = num_units},
       scratch);
  gemm({.m = count,
        .n = N,
        .k = num_units,
        .a = {.data = parts_CP.data(), .stride = num_units},
        .b = {.data = u_PN, .stride = N},
        .c = x_CN,
        .c_stride = N,
        .accumulate = Accumulate::Yes,
        .alpha = -1},
       scratch);
}

}  // namespace

void orthonormalise_steps(const tensor::Stream& stream, const Orthonormalise& args, std::int64_t first,
                          std::int64_t end) {
  const std::int64_t N = args.x_BNN.size(1);
  const std::int64_t num_panels = (N + kPanel - 1) / kPanel;
  const auto num_matrices = static_cast<std::size_t>(args.x_BNN.size(0));
  auto* const x_BNN = args.x_BNN.data<float>();
  const auto matrix = [&](std::size_t index) { return x_BNN + static_cast<std::int64_t>(index) * N * N; };
  for (std::int64_t step = first; step < end; ++step) {
    const std::int64_t row = step % num_panels * kPanel;
    const std::int64_t behind = std::min(row + kPanel, N);
    stream.pool().run(num_matrices, [&](std::size_t index, std::size_t) {
      orthonormalise_panel(matrix(index), N, row, behind - row, step < num_panels ? 2 : 1);
    });
    const auto num_tasks = static_cast<std::size_t>((N - behind + kRowsOfTask - 1) / kRowsOfTask);
    stream.pool().run(num_matrices * num_tasks, [&](std::size_t task, std::size_t thread) {
      float* const x_NN = matrix(task / num_tasks);
      const std::int64_t taken = behind + static_cast<std::int64_t>(task % num_tasks) * kRowsOfTask;
      take_panel_away(x_NN + row * N, behind - row, x_NN + taken * N, std::min(kRowsOfTask, N - taken), N,
                      stream.scratch(thread));
    });
  }
}

void orthonormalise(const tensor::Stream& stream, const Orthonormalise& args) {
  orthonormalise_steps(stream, args, 0, num_orthonormalise_steps(args.x_BNN.size(1)));
}

}  // namespace plenum::kernels::cpu
