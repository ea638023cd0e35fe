#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "plenum/describe/bert.h"
#include "plenum/plan/cluster.h"
#include "plenum/plan/step_sampler.h"
#include "plenum/plan/strategies.h"

namespace plenum::test {

/// Steps of sequences whose lengths are drawn anew in every step, or are all alike.
class MadeUpSteps final : public plan::StepSampler {
 public:
  struct Shape {
    std::size_t items = 48;
    std::int64_t max_length = 64;
    bool is_uniform = false;
    std::uint64_t seed = 1;
  };

  explicit MadeUpSteps(Shape shape) : shape_(shape) {
    for (const std::int64_t length : lengths(0)) add(length, typical_);
  }

  batch::Work typical() const override { return typical_; }
  double tokens_per_step() const override { return static_cast<double>(typical_.tokens); }
  std::size_t items_per_step() const override { return shape_.items; }

  plan::StepLimits limits(std::size_t replicas, const batch::MicroBatchCut& cut) const override {
    const std::size_t items = items_of(replicas);
    plan::StepLimits limits;
    if (cut.count) {
      limits.micro_batches_per_replica = static_cast<std::size_t>(*cut.count);
    } else {
      base::require(cut.tokens && *cut.tokens >= shape_.max_length, "too small");
      const auto fitting = static_cast<std::size_t>(*cut.tokens / shape_.max_length);
      limits.micro_batches_per_replica = (items + fitting - 1) / fitting;
    }
    const auto of_one = static_cast<std::int64_t>((items + limits.micro_batches_per_replica - 1) /
                                                  limits.micro_batches_per_replica);
    limits.capacity = {.rows = of_one * shape_.max_length,
                       .sequences = of_one,
                       .labels = {of_one * masked(shape_.max_length)},
                       .max_length = shape_.max_length};
    return limits;
  }

  std::vector<plan::StepWork> sample(std::size_t replicas, const batch::MicroBatchCut& cut,
                                     std::size_t num_steps) const override {
    const std::size_t of_replica = limits(replicas, cut).micro_batches_per_replica;
    std::vector<plan::StepWork> steps(num_steps);
    for (std::size_t s = 0; s < num_steps; ++s) {
      steps[s].micro_batches.resize(replicas * of_replica);
      const std::vector<std::int64_t> drawn = lengths(s);
      for (std::size_t i = 0; i < drawn.size(); ++i) {
        // The last micro-batches of a replica are filled first.
        const std::size_t index = of_replica - 1 - i / replicas % of_replica;
        plan::MicroBatchWork& work = steps[s].micro_batches[i % replicas * of_replica + index];
        add(drawn[i], work.work);
        work.rows = work.work.tokens;
      }
    }
    return steps;
  }

 private:
  static std::int64_t masked(std::int64_t length) { return std::max<std::int64_t>(1, length * 15 / 100); }
  static void add(std::int64_t length, batch::Work& work) {
    work +=
        {.tokens = length, .squared_lengths = length * length, .sequences = 1, .labels = {masked(length)}};
  }
  std::size_t items_of(std::size_t replicas) const { return (shape_.items + replicas - 1) / replicas; }
  std::vector<std::int64_t> lengths(std::size_t step) const {
    std::mt19937_64 random(shape_.seed * 1000 + step);
    std::vector<std::int64_t> drawn(shape_.items, shape_.max_length);
    if (shape_.is_uniform) return drawn;
    for (std::int64_t& length : drawn)
      length = std::uniform_int_distribution<std::int64_t>(3, shape_.max_length)(random);
    return drawn;
  }

  Shape shape_;
  batch::Work typical_;
};

/// Numbers and things drawn at random.
class MadeUp {
 public:
  explicit MadeUp(std::uint64_t seed) : random_(seed) {}

  std::int64_t number(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  /// Equally likely in each power of ten.
  double magnitude(double least, double most) {
    return std::exp(std::uniform_real_distribution<double>(std::log(least), std::log(most))(random_));
  }
  bool coin() { return number(0, 1) == 1; }
  template <typename Value>
  Value one_of(const std::vector<Value>& values) {
    return values[static_cast<std::size_t>(number(0, std::ssize(values) - 1))];
  }

  describe::ModelDescription model() {
    const std::int64_t heads = number(1, 4);
    return describe::describe_bert({.vocabulary = number(50, 3000),
                                    .width = 64 * heads,
                                    .num_layers = number(1, 10),
                                    .num_heads = heads,
                                    .mlp_width = 64 * number(1, 16),
                                    .max_positions = 512});
  }

  plan::Cluster cluster(tensor::Device kind) {
    plan::Cluster cluster{.name = "made up",
                          .num_nodes = 16,
                          .devices_per_node = static_cast<std::size_t>(number(1, 8)),
                          .kind = kind,
                          .within_node = {magnitude(1e-7, 1e-4), magnitude(1e8, 1e12)},
                          .between_nodes = {magnitude(1e-6, 1e-3), magnitude(1e7, 1e11)},
                          .step_overhead_seconds = coin() ? 0 : magnitude(1e-6, 1e-3)};
    cluster.device.peak_flops = magnitude(1e10, 1e15);
    cluster.device.peak_bytes_per_second = magnitude(1e9, 1e13);
    cluster.device.launch_seconds = coin() ? 0 : magnitude(1e-7, 1e-5);
    for (std::size_t kind_index = 0; kind_index < plan::kNumOpKinds; ++kind_index) {
      const auto op = static_cast<plan::OpKind>(kind_index);
      cluster.device.set_default_efficiency(op, magnitude(0.1, 1.5));
      if (coin()) continue;
      std::vector<plan::EfficiencyPoint> points;
      for (std::int64_t i = number(1, 4); i > 0; --i)
        points.push_back({magnitude(1, 1e5), magnitude(1, 1e4), magnitude(1, 1e4), magnitude(0.05, 1.5)});
      cluster.device.set_points(op, points);
    }
    return cluster;
  }

  MadeUpSteps steps() {
    return MadeUpSteps({.items = static_cast<std::size_t>(number(1, 64)),
                        .max_length = number(4, 128),
                        .is_uniform = coin(),
                        .seed = static_cast<std::uint64_t>(number(1, 1 << 20))});
  }

 private:
  std::mt19937_64 random_;
};

/// A grid that keeps spaces small.
inline plan::StrategyGrid small_grid() {
  return {.micro_batch_tokens = {64, 256, 1024},
          .micro_batches_per_place = {1, 2},
          .bucket_bytes = {100'000, 100'000'000},
          .chunks = {2}};
}

}  // namespace plenum::test
