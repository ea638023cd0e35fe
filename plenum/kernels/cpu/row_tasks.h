#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "plenum/tensor/stream.h"

namespace plenum::kernels::cpu {

/// Calls body(row, thread) for every row, a few neighbouring rows to a task.
template <typename Body>
void for_each_row(const tensor::Stream& stream, std::int64_t num_rows, Body body) {
  constexpr std::int64_t kRowsPerTask = 16;
  const std::int64_t num_tasks = (num_rows + kRowsPerTask - 1) / kRowsPerTask;
  stream.pool().run(static_cast<std::size_t>(num_tasks), [&](std::size_t task, std::size_t thread) {
    const std::int64_t begin = static_cast<std::int64_t>(task) * kRowsPerTask;
    const std::int64_t end = std::min(num_rows, begin + kRowsPerTask);
    for (std::int64_t row = begin; row < end; ++row) body(row, thread);
  });
}

}  // namespace plenum::kernels::cpu
