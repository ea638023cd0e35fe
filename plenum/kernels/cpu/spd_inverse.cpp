#include "plenum/kernels/cpu/spd_inverse.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cpu/gemm.h"
#include "plenum/kernels/cpu/row_tasks.h"
#include "plenum/kernels/cpu/triangle_tasks.h"

// N rows, P columns of a panel.

namespace plenum::kernels::cpu {
namespace {

constexpr std::int64_t kPanel = kInversePanel;

/// A diagonal block and its inverse, in double precision.
class DiagonalBlock {
 public:
  /// Reads the lower half.
  DiagonalBlock(const float* matrix, std::int64_t stride, std::int64_t size) : size_(size) {
    for (std::int64_t i = 0; i < size; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) at(i, j) = double{matrix[i * stride + j]};
    }
  }

  /// By its Cholesky factor L: L^-T L^-1, the whole of it. False, with nothing of use left, where a pivot is
  /// below the least.
  bool invert(double least_pivot) {
    for (std::int64_t j = 0; j < size_; ++j) {
      double pivot = at(j, j);
      for (std::int64_t k = 0; k < j; ++k) pivot -= at(j, k) * at(j, k);
      if (!(pivot >= least_pivot && pivot > 0 && std::isfinite(pivot))) return false;
      at(j, j) = std::sqrt(pivot);
      for (std::int64_t i = j + 1; i < size_; ++i) {
        double sum = at(i, j);
        for (std::int64_t k = 0; k < j; ++k) sum -= at(i, k) * at(j, k);
        at(i, j) = sum / at(j, j);
      }
    }
    invert_triangle();
    multiply_triangles();
    return true;
  }

  double at(std::int64_t i, std::int64_t j) const { return elements_[index(i, j)]; }

 private:
  static std::size_t index(std::int64_t i, std::int64_t j) {
    return static_cast<std::size_t>(i * kPanel + j);
  }
  double& at(std::int64_t i, std::int64_t j) { return elements_[index(i, j)]; }

  /// L becomes L^-1, column by column.
  void invert_triangle() {
    for (std::int64_t j = 0; j < size_; ++j) {
      at(j, j) = 1 / at(j, j);
      for (std::int64_t i = j + 1; i < size_; ++i) {
        double sum = 0;
        for (std::int64_t k = j; k < i; ++k) sum += at(i, k) * at(k, j);
        at(i, j) = -sum / at(i, i);
      }
    }
  }

  /// L^-1 becomes L^-T L^-1: row by row, since row i of the product reads L^-1 from row i on only.
  void multiply_triangles() {
    for (std::int64_t i = 0; i < size_; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        double sum = 0;
        for (std::int64_t k = i; k < size_; ++k) sum += at(k, i) * at(k, j);
        at(i, j) = sum;
      }
    }
    for (std::int64_t i = 0; i < size_; ++i) {
      for (std::int64_t j = i + 1; j < size_; ++j) at(i, j) = at(j, i);
    }
  }

  std::int64_t size_;
  std::array<double, kPanel * kPanel> elements_;
};

/// A matrix under way, and the room of one.
class Sweep {
 public:
  Sweep(const tensor::Stream& stream, const SpdMatrix& matrix, float* room)
      : stream_(stream),
        size_(matrix.matrix_NN.size(0)),
        matrix_(matrix.matrix_NN.data<float>()),
        panel_(room),
        product_(panel_ + size_ * kPanel) {}

  /// Eliminates the columns of a panel. False where its diagonal block is not positive definite.
  bool eliminate(std::int64_t panel_index, double least_pivot) {
    const std::int64_t begin = panel_index * kPanel;
    const std::int64_t width = std::min(kPanel, size_ - begin);
    DiagonalBlock block(matrix_ + begin * size_ + begin, size_, width);
    if (!block.invert(least_pivot)) return false;
    copy_panel(begin, width);
    multiply_panel(block, width);
    for_lower_blocks(stream_, size_, [&](const Block& part, std::size_t thread) {
      gemm({.m = part.rows,
            .n = part.columns,
            .k = width,
            .a = {.data = product_ + part.row * kPanel, .stride = kPanel},
            .b = {.data = panel_ + part.column * kPanel, .stride = kPanel, .is_transposed = true},
            .c = matrix_ + part.row * size_ + part.column,
            .c_stride = size_,
            .accumulate = Accumulate::Yes,
            .alpha = -1},
           stream_.scratch(thread));
    });
    write_panel(block, begin, width);
    return true;
  }

  /// Of the negative inverse in the lower half makes the whole inverse. False where it is not finite.
  bool finish() {
    std::atomic<bool> is_finite = true;
    for_each_row(stream_, size_, [&](std::int64_t i, std::size_t) {
      float largest = 0;
      for (std::int64_t j = 0; j <= i; ++j) {
        float& element = matrix_[i * size_ + j];
        element = -element;
        // Once a sum has met a NaN or an infinity, it is not finite any more.
        largest += std::abs(element) * 0;
      }
      if (!(largest == 0)) is_finite = false;
    });
    for_each_row(stream_, size_, [&](std::int64_t i, std::size_t) {
      for (std::int64_t j = i + 1; j < size_; ++j) matrix_[i * size_ + j] = matrix_[j * size_ + i];
    });
    return is_finite;
  }

 private:
  /// The columns as the lower half has them: above the block its row, transposed. The block's own rows are
  /// zero, so that the update leaves them alone.
  void copy_panel(std::int64_t begin, std::int64_t width) {
    for_each_row(stream_, size_, [&](std::int64_t i, std::size_t) {
      float* const row = panel_ + i * kPanel;
      if (i < begin) {
        for (std::int64_t j = 0; j < width; ++j) row[j] = matrix_[(begin + j) * size_ + i];
      } else if (i < begin + width) {
        std::fill_n(row, width, 0.0F);
      } else {
        std::copy_n(matrix_ + i * size_ + begin, width, row);
      }
    });
  }

  void multiply_panel(const DiagonalBlock& inverse, std::int64_t width) {
    std::array<float, kPanel * kPanel> factor;
    for (std::int64_t i = 0; i < width; ++i) {
      for (std::int64_t j = 0; j < width; ++j)
        factor[static_cast<std::size_t>(i * kPanel + j)] = static_cast<float>(inverse.at(i, j));
    }
    parallel_gemm(stream_, {.m = size_,
                            .n = width,
                            .k = width,
                            .a = {.data = panel_, .stride = kPanel},
                            .b = {.data = factor.data(), .stride = kPanel},
                            .c = product_,
                            .c_stride = kPanel});
  }

  /// Puts the panel's new columns into the lower half.
  void write_panel(const DiagonalBlock& inverse, std::int64_t begin, std::int64_t width) {
    for_each_row(stream_, size_, [&](std::int64_t i, std::size_t) {
      const float* const row = product_ + i * kPanel;
      if (i < begin) {
        for (std::int64_t j = 0; j < width; ++j) matrix_[(begin + j) * size_ + i] = row[j];
      } else if (i < begin + width) {
        for (std::int64_t j = 0; j <= i - begin; ++j)
          matrix_[i * size_ + begin + j] = static_cast<float>(-inverse.at(i - begin, j));
      } else {
        std::copy_n(row, width, matrix_ + i * size_ + begin);
      }
    });
  }

  const tensor::Stream& stream_;
  std::int64_t size_;
  float* matrix_;
  float* panel_;
  float* product_;
};

}  // namespace

void invert_spd(const tensor::Stream& stream, const InvertSpd& args) {
  check_scratch(stream, gemm_scratch_bytes());
  for (const SpdMatrix& matrix : args.matrices) {
    double* const state = matrix.state_C.data<double>();
    double& has_failed = state[index_of(InverseState::HasFailed)];
    const double least_pivot = state[index_of(matrix.least_pivot)];
    Sweep sweep(stream, matrix, args.room.data<float>());
    const std::int64_t num_steps = num_inverse_steps(matrix.matrix_NN.size(0));
    const std::int64_t end_step = std::min(args.end_step, num_steps);
    for (std::int64_t step = args.first_step; step < end_step && has_failed == 0; ++step) {
      const bool is_done = step + 1 < num_steps ? sweep.eliminate(step, least_pivot) : sweep.finish();
      if (!is_done) has_failed = 1;
    }
  }
}

}  // namespace plenum::kernels::cpu
