#include "plenum/kernels/muon_step.h"

#include <algorithm>
#include <cmath>

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/muon_step.h"
#include "plenum/kernels/cuda/product/muon_step.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {
namespace {

void check_scalars(const tensor::ConstTensorView& scalars_C) {
  check_argument("scalars_C", scalars_C, tensor::DType::Float64,
                 {static_cast<std::int64_t>(kNumStepScalars)});
}

void check_flat(const tensor::Shape& shape) {
  base::check(shape.num_dims() == 1, "buffers must be flat: {}", to_string(shape));
}

void check_room(const tensor::Stream& stream, std::span<const FlatMatrices> groups,
                const tensor::TensorView& room) {
  const std::int64_t least_room = workspace::newton_schulz_room(stream.device(), groups);
  base::check(room.num_elements() >= least_room, "Newton-Schulz iterations need room for {}: {} given",
              least_room, room.num_elements());
}

void check_places(std::span<const FlatMatrices> groups, const tensor::Shape& shape) {
  for (const FlatMatrices& group : groups) {
    const std::int64_t end =
        group.begin_of(std::max<std::int64_t>(0, group.count - 1)) + group.num_elements();
    base::check(
        group.begin >= 0 && end <= shape[0] && (group.count <= 1 || group.stride >= group.num_elements()),
        "matrices must lie in the buffers without overlap: {} from {} on, {} apart", group.count, group.begin,
        group.stride);
  }
}

void check_on_cpu(const tensor::Stream& stream) {
  base::check(stream.device() == tensor::Device::Cpu, "the halves of a step of Muon run on the CPU alone");
}

}  // namespace

void muon_step(const tensor::Stream& stream, const MuonStep& args) {
  const tensor::Shape& shape = args.weight_N.shape();
  check_flat(shape);
  check_argument("weight_N", args.weight_N, shape);
  check_argument("gradient_N", args.gradient_N, shape);
  check_argument("moment_N", args.moment_N, shape);
  check_argument("iterate_N", args.iterate_N, shape);
  check_scalars(args.scalars_C);
  if (args.compute_weight_N)
    check_argument("compute_weight_N", args.compute_weight_N, tensor::DType::BFloat16, shape);
  check_room(stream, args.groups, args.room);
  check_places(args.groups, shape);
  dispatch<&cpu::muon_step, &cuda::muon_step>(stream, args);
}

void muon_directions(const tensor::Stream& stream, const MuonDirections& args) {
  check_on_cpu(stream);
  const tensor::Shape& shape = args.gradient_N.shape();
  check_flat(shape);
  check_argument("gradient_N", args.gradient_N, shape);
  check_argument("moment_N", args.moment_N, shape);
  check_argument("iterate_N", args.iterate_N, shape);
  check_scalars(args.scalars_C);
  check_room(stream, args.groups, args.room);
  check_places(args.groups, shape);
  check_places(args.others, shape);
  cpu::muon_directions(stream, args);
}

void muon_weights(const tensor::Stream& stream, const MuonWeights& args) {
  check_on_cpu(stream);
  const tensor::Shape& shape = args.weight_N.shape();
  check_flat(shape);
  check_argument("direction_N", args.direction_N, shape);
  check_argument("weight_N", args.weight_N, shape);
  check_scalars(args.scalars_C);
  check_places(args.groups, shape);
  cpu::muon_weights(stream, args);
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
