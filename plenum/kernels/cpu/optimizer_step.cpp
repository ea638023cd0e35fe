#include "plenum/kernels/cpu/optimizer_step.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace plenum::kernels::cpu {
namespace {

/// Elements that a thread takes at a time.
constexpr std::int64_t kBlock = 1 << 15;
/// Sums are taken in at most this many parts.
constexpr std::size_t kParts = 256;

std::size_t num_blocks(std::int64_t count) {
  return static_cast<std::size_t>((count + kBlock - 1) / kBlock);
}

/// The numbers of a step, as the inner loops use them.
struct Factors {
  explicit Factors(const AdamStep& args)
      : scale(static_cast<float>(args.gradient_scale)),
        beta1(static_cast<float>(args.beta1)),
        rest1(static_cast<float>(1 - args.beta1)),
        beta2(static_cast<float>(args.beta2)),
        rest2(static_cast<float>(1 - args.beta2)),
        correction1(static_cast<float>(1 / args.correction1)),
        correction2(static_cast<float>(1 / std::sqrt(args.correction2))),
        epsilon(static_cast<float>(args.epsilon)) {}

  float scale, beta1, rest1, beta2, rest2;
  float correction1;  ///< what m is multiplied by
  float correction2;  ///< what sqrt(v) is multiplied by
  float epsilon;
};

/// A piece of the flat buffers.
struct Piece {
  Piece(const AdamStep& args, std::int64_t begin, std::int64_t end)
      : count(end - begin),
        gradient(args.gradient_N.data<float>() + begin),
        weight(args.weight_N.data<float>() + begin),
        first_moment(args.first_moment_N.data<float>() + begin),
        second_moment(args.second_moment_N.data<float>() + begin) {}

  std::int64_t count;
  const float* __restrict gradient;
  float* __restrict weight;
  float* __restrict first_moment;
  float* __restrict second_moment;
};

void update_moments(const Factors& f, const Piece& piece) {
  for (std::int64_t i = 0; i < piece.count; ++i) {
    const float g = f.scale * piece.gradient[i];
    piece.first_moment[i] = f.beta1 * piece.first_moment[i] + f.rest1 * g;
    piece.second_moment[i] = f.beta2 * piece.second_moment[i] + f.rest2 * (g * g);
  }
}

/// What is taken from a weight for a learning rate of 1.
float direction(const Factors& f, float decay, const Piece& piece, std::int64_t i) {
  return f.correction1 * piece.first_moment[i] /
             (std::sqrt(piece.second_moment[i]) * f.correction2 + f.epsilon) +
         decay * piece.weight[i];
}

void descend(const Factors& f, float decay, float rate, const Piece& piece) {
  for (std::int64_t i = 0; i < piece.count; ++i) piece.weight[i] -= rate * direction(f, decay, piece, i);
}

float decay_of(const AdamStep& args, const FlatRange& range) {
  return range.is_decayed ? static_cast<float>(args.decay) : 0.0F;
}

}  // namespace

double sum_of_squares(const tensor::Stream& stream, std::span<const float> values_N) {
  const std::size_t part = (values_N.size() + kParts - 1) / kParts;
  std::array<double, kParts> sums{};
  stream.pool().run(kParts, [&](std::size_t index, std::size_t) {
    const std::size_t end = std::min((index + 1) * part, values_N.size());
    for (std::size_t i = std::min(index * part, end); i < end; ++i) {
      sums[index] += double{values_N[i]} * values_N[i];
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

void adam_step(const tensor::Stream& stream, const AdamStep& args) {
  const Factors factors(args);
  for (const FlatRange& range : args.ranges) {
    const float decay = decay_of(args, range);
    stream.pool().run(num_blocks(range.end - range.begin), [&](std::size_t block, std::size_t) {
      const std::int64_t begin = range.begin + static_cast<std::int64_t>(block) * kBlock;
      const Piece piece(args, begin, std::min(begin + kBlock, range.end));
      update_moments(factors, piece);
      descend(factors, decay, static_cast<float>(args.learning_rate), piece);
    });
  }
}

void lamb_step(const tensor::Stream& stream, const AdamStep& args) {
  const Factors factors(args);
  for (const FlatRange& range : args.ranges) {
    const float decay = decay_of(args, range);
    const Piece piece(args, range.begin, range.end);
    update_moments(factors, piece);
    double weight_squares = 0;
    double direction_squares = 0;
    for (std::int64_t i = 0; i < piece.count; ++i) {
      const double u = direction(factors, decay, piece, i);
      weight_squares += double{piece.weight[i]} * piece.weight[i];
      direction_squares += u * u;
    }
    const bool has_ratio = range.is_decayed && weight_squares > 0 && direction_squares > 0;
    const double ratio = has_ratio ? std::sqrt(weight_squares / direction_squares) : 1;
    descend(factors, decay, static_cast<float>(args.learning_rate * ratio), piece);
  }
  (void)stream;
}

}  // namespace plenum::kernels::cpu
