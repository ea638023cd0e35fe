#include "plenum/kernels/muon_step.h"

#include <algorithm>
#include <cmath>

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/muon_step.h"
#include "plenum/kernels/cuda/product/muon_step.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {

void muon_step(const tensor::Stream& stream, const MuonStep& args) {
  const tensor::Shape& shape = args.weight_N.shape();
  base::check(shape.num_dims() == 1, "buffers must be flat: {}", to_string(shape));
  check_argument("weight_N", args.weight_N, shape);
  check_argument("gradient_N", args.gradient_N, shape);
  check_argument("moment_N", args.moment_N, shape);
  check_argument("iterate_N", args.iterate_N, shape);
  check_argument("scalars_C", args.scalars_C, tensor::DType::Float64,
                 {static_cast<std::int64_t>(kNumStepScalars)});
  if (args.compute_weight_N)
    check_argument("compute_weight_N", args.compute_weight_N, tensor::DType::BFloat16, shape);
  const std::int64_t least_room = workspace::newton_schulz_room(stream.device(), args.groups);
  base::check(args.room.num_elements() >= least_room, "Newton-Schulz iterations need room for {}: {} given",
              least_room, args.room.num_elements());
  for (const FlatMatrices& group : args.groups) {
    const std::int64_t end =
        group.begin_of(std::max<std::int64_t>(0, group.count - 1)) + group.num_elements();
    base::check(
        group.begin >= 0 && end <= shape[0] && (group.count <= 1 || group.stride >= group.num_elements()),
        "matrices must lie in the buffers without overlap: {} from {} on, {} apart", group.count, group.begin,
        group.stride);
  }
  dispatch<&cpu::muon_step, &cuda::muon_step>(stream, args);
}

double muon_factor(const FlatMatrices& matrices) {
  return 0.2 * std::sqrt(static_cast<double>(matrices.largest_size()));
}

std::vector<std::int64_t> matrix_chunks(std::span<const FlatMatrices> groups) {
  constexpr std::int64_t kChunk = workspace::kOptimizerChunk;
  std::vector<std::int64_t> chunks_C8;
  std::int64_t index = 0;
  for (const FlatMatrices& group : groups) {
    for (std::int64_t i = 0; i < group.count; ++i, ++index) {
      const std::int64_t first = group.begin_of(i);
      const std::int64_t last = first + group.num_elements();
      for (std::int64_t begin = first; begin < last; begin += kChunk) {
        chunks_C8.insert(chunks_C8.end(), {begin, std::min(begin + kChunk, last), first, last - first,
                                           group.largest_size(), group.is_decayed ? 1 : 0, index, 0});
      }
    }
  }
  return chunks_C8;
}

}  // namespace plenum::kernels
