#include "plenum/plan/strategy.h"

#include <fmt/format.h>

#include "plenum/schedule/generate/generator.h"

namespace plenum::plan {
namespace {

std::string micro_batches_text(const batch::MicroBatchCut& cut) {
  if (cut.count) return fmt::format(", {} micro-batch{}", *cut.count, *cut.count == 1 ? "" : "es");
  return cut.tokens ? fmt::format(", micro-batches of {} tokens", *cut.tokens) : "";
}

std::string sharding_text(schedule::Sharding sharding) {
  switch (sharding) {
    case schedule::Sharding::None:
      return "";
    case schedule::Sharding::Optimizer:
      return ", shard optimizer";
    case schedule::Sharding::Gradients:
      return ", shard gradients";
    case schedule::Sharding::Parameters:
      return ", shard parameters";
  }
  return "";
}

std::string recomputation_text(schedule::Recomputation recomputation) {
  if (recomputation == schedule::Recomputation::None) return "";
  return recomputation == schedule::Recomputation::Mlp ? ", recompute mlp" : ", recompute full";
}

/// Matrices are multiplied whole.
std::optional<std::string> reason_against_dividing(const Strategy& strategy) {
  if (strategy.matrices.kind == schedule::Preconditioner::None) return std::nullopt;
  const bool is_kfac = strategy.matrices.kind == schedule::Preconditioner::Kfac;
  if (strategy.slices > 1) {
    return is_kfac ? "K-FAC needs whole linear maps on a rank; leave out --tp, or choose another --optimizer"
                   : "Muon and SOAP multiply whole matrices, which --tp divides; leave out --tp, or train "
                     "with --optimizer adamw or lamb";
  }
  if (strategy.sharding != schedule::Sharding::None) {
    return is_kfac ? "K-FAC needs whole gradients on a rank; leave out --shard, or choose another --optimizer"
                   : "Muon and SOAP multiply whole matrices, which --shard cuts; leave out --shard, or train "
                     "with --optimizer adamw or lamb";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> reason_against(const Strategy& strategy) {
  if (std::optional<std::string> reason = reason_against_dividing(strategy)) return reason;
  if (strategy.depth == 1) return std::nullopt;
  if (strategy.sharding != schedule::Sharding::None) {
    return fmt::format(
        "--shard does not go with --pp {} so far: a rank of a pipeline holds its own layers only; leave out "
        "one of both",
        strategy.depth);
  }
  if (strategy.reduce_dtype != tensor::DType::Float32) {
    return fmt::format("--reduce-dtype bf16 does not go with --pp {} so far; leave out one of both",
                       strategy.depth);
  }
  const schedule::Generator& generator = schedule::generator_named(strategy.pipeline);
  if (strategy.depth % generator.depth_multiple != 0) {
    return fmt::format("--schedule {} needs --pp to be a multiple of {}: {}", generator.name,
                       generator.depth_multiple, strategy.depth);
  }
  if (generator.splits_backward && strategy.recomputation != schedule::Recomputation::None) {
    return fmt::format(
        "--recompute does not go with --schedule {} so far, whose weight gradients come later than what they "
        "read would be recomputed",
        generator.name);
  }
  return std::nullopt;
}

std::string strategy_text(const Strategy& strategy) {
  std::string text = fmt::format("dp {}", strategy.replicas);
  if (strategy.slices > 1) text += fmt::format(" x tp {}", strategy.slices);
  if (strategy.depth > 1) {
    text += fmt::format(" x pp {}, {}", strategy.depth, strategy.pipeline);
    if (schedule::generator_named(strategy.pipeline).has_chunks)
      text += fmt::format(" of {} chunks", strategy.chunks);
  }
  return text + micro_batches_text(strategy.micro_batches) + sharding_text(strategy.sharding) +
         recomputation_text(strategy.recomputation);
}

}  // namespace plenum::plan
