#include "plenum/kernels/cpu/column_sums.h"

#include <type_traits>

#include "plenum/kernels/cpu/for_vectors.h"
#include "plenum/kernels/cpu/vector.h"

namespace plenum::kernels::cpu {
namespace {

/// Adds the sums of kVectors neighbouring vectors of each row. Each lane is added from the first row to the
/// last.
template <std::int64_t kVectors, typename Lanes>
void add_vectors(const MatrixColumns& x, std::int64_t column, Lanes lanes, float* sums_of_columns) {
  constexpr auto kStep = static_cast<std::int64_t>(kLanes);
  const float* const first = x.data + column;
  Vec sums[kVectors] = {};
  for (std::int64_t row = 0; row < x.num_rows; ++row) {
    for (std::int64_t i = 0; i < kVectors; ++i)
      sums[i] += load_first(first + row * x.stride + i * kStep, lanes);
  }
  float* const total = sums_of_columns + column;
  for (std::int64_t i = 0; i < kVectors; ++i) {
    store_first(total + i * kStep, load_first(total + i * kStep, lanes) + sums[i], lanes);
  }
}

}  // namespace

void add_sum_of_rows(const tensor::Stream& stream, const MatrixColumns& x, float* sums) {
  // Several neighbouring cache lines of a row are read together, so that as many sums go on at a time and the
  // memory is read ahead.
  constexpr std::int64_t kVectors = 4;
  constexpr std::int64_t kColumns = kVectors * static_cast<std::int64_t>(kLanes);
  const auto num_tasks = static_cast<std::size_t>((x.num_columns + kColumns - 1) / kColumns);
  stream.pool().run(num_tasks, [&](std::size_t task, std::size_t) {
    const std::int64_t begin = static_cast<std::int64_t>(task) * kColumns;
    if (begin + kColumns <= x.num_columns) {
      return add_vectors<kVectors>(x, begin, std::integral_constant<std::size_t, kLanes>(), sums);
    }
    for_vectors(begin, x.num_columns,
                [&](std::int64_t column, auto lanes) { add_vectors<1>(x, column, lanes, sums); });
  });
}

void add_column_sums(const tensor::Stream& stream, const AddColumnSums& args) {
  MatrixColumns part = rows_of(args.x_T3D);
  part.num_columns /= 3;
  for (const tensor::TensorView& sum_D : args.sum_3_D) {
    if (sum_D) add_sum_of_rows(stream, part, sum_D.data<float>());
    part.data += part.num_columns;
  }
}

}  // namespace plenum::kernels::cpu
