#include "tests/pipeline/toy_run.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tests/pipeline/serial_reference.h"

namespace plenum::pipeline {

using schedule::ActionType;
using schedule::LayerId;
using schedule::Rank;
using schedule::StageId;

namespace {

constexpr double kTolerance = 1e-12;

/// The greatest difference over the greatest magnitude; nan counts as a difference.
double relative_difference(std::span<const double> values, std::span<const double> expected) {
  if (values.size() != expected.size()) return INFINITY;
  double scale = 1e-300;
  double difference = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    scale = std::max(scale, std::abs(expected[i]));
    const double d = std::abs(values[i] - expected[i]);
    difference = d <= difference ? difference : d;
  }
  return difference / scale;
}

bool differs(std::span<const double> values, std::span<const double> expected) {
  return !(relative_difference(values, expected) <= kTolerance);
}

/// Looks at one rank's layer; empty if it is as expected. Counts the K-FAC factors that it saw.
std::string compare_layer(ToyProgram& program, StageId stage, LayerId layer, const SerialResult& expected,
                          std::uint64_t first_step, std::size_t& num_factors) {
  const std::span<const Block> blocks = program.blocks(stage, layer);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (!blocks[b].is_elsewhere && differs(blocks[b].parameter, expected.parameters[layer.index()][b])) {
      return fmt::format("parameter {} of layer {}", b, layer.value);
    }
    const Values gradient = program.final_gradient(stage, layer, b);
    if (!gradient.empty() && differs(gradient, expected.gradients[layer.index()][b])) {
      return fmt::format("gradient {} of layer {}", b, layer.value);
    }
  }
  for (std::uint64_t step = 0; step < expected.curvature.size(); ++step) {
    for (std::size_t map = 0; map < expected.curvature[step][layer.index()].size(); ++map) {
      const Values* curvature = program.curvature_of(stage, layer, map, first_step + step);
      if (curvature == nullptr) continue;
      ++num_factors;
      const std::span<const double> both(*curvature);
      const std::span<const double> expected_both(expected.curvature[step][layer.index()][map]);
      const std::size_t half = both.size() / 2;
      if (differs(both.first(half), expected_both.first(half)) ||
          differs(both.last(half), expected_both.last(half))) {
        return fmt::format("curvature of map {} of layer {} in step {}", map, layer.value, step);
      }
    }
  }
  return {};
}

}  // namespace

double toy_seconds(Rank, const schedule::Action& action) {
  const double layers = action.end_layer.value - action.first_layer.value;
  switch (action.type) {
    case ActionType::Forward:
    case ActionType::Recompute:
    case ActionType::InputGradient:
    case ActionType::WeightGradient:
      return layers;
    case ActionType::Backward:
      return 2 * layers;
    case ActionType::CurvatureA:
    case ActionType::CurvatureB:
      return 0.4;
    case ActionType::Invert:
    case ActionType::InverseRoot:
      return 1.5 / action.num_pieces;
    case ActionType::InvertLayers:
      return 1.5 * layers;
    case ActionType::Precondition:
    case ActionType::AccumulateFactor:
      return 0.1 * layers;
    default:
      return 0;
  }
}

std::unique_ptr<ToyProgram> make_toy_program(const schedule::Schedule& schedule,
                                             const schedule::Dataflow& dataflow, Rank rank) {
  return std::make_unique<ToyProgram>(schedule, dataflow, rank);
}

ToyRun::ToyRun(const schedule::Schedule& schedule, ExecutorOptions options, const MakeProgram& make_program,
               Communicators communicators)
    : schedule_(schedule), dataflow_(schedule) {
  std::vector<StageProgram*> programs;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    programs_.push_back(make_program(schedule, dataflow_, Rank::at(rank)));
    programs.push_back(programs_.back().get());
  }
  std::vector<LocalRank> ranks = local_ranks(programs);
  for (std::size_t rank = 0; rank < communicators.size(); ++rank) {
    ranks[rank].communicator = std::move(communicators[rank]);
  }
  executor_ = std::make_unique<Executor>(schedule, std::move(ranks), std::move(options));
}

Values ToyRun::everything() const {
  Values values;
  for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
    for (const StageId stage : schedule_.ranks[rank].stages) {
      for (LayerId layer = dataflow_.layers().first(stage); layer < dataflow_.layers().end(stage);
           ++layer.value) {
        for (const Block& block : programs_[rank]->blocks(stage, layer)) {
          values.insert(values.end(), block.parameter.begin(), block.parameter.end());
          values.insert(values.end(), block.momentum.begin(), block.momentum.end());
        }
      }
    }
    for (const auto& [step, loss] : programs_[rank]->losses()) values.push_back(loss);
  }
  return values;
}

std::string difference_from_serial(const schedule::Schedule& schedule, std::uint64_t num_steps,
                                   ExecutorOptions options, ToyRun::Communicators communicators,
                                   const ToyRun::MakeProgram& make_program) {
  const std::uint64_t first_step = options.first_step;
  ToyRun run(schedule, std::move(options), make_program, std::move(communicators));
  try {
    run.executor().run(num_steps);
    if (num_steps > 0) run.executor().await_step(first_step + num_steps - 1);
  } catch (const ExecutionError& error) {
    return error.what();
  }
  for (const std::unique_ptr<ToyProgram>& program : run.programs()) {
    if (!program->skipped_steps().empty()) return "a gradient is not finite";
  }
  const SerialResult expected = train_serially(schedule, num_steps, first_step);
  std::vector<double> losses(num_steps, 0.0);
  for (const std::unique_ptr<ToyProgram>& program : run.programs()) {
    for (const auto& [step, loss] : program->losses()) losses[step - first_step] += loss;
  }
  if (differs(losses, expected.losses)) return "the loss";
  const schedule::StageLayers layers(schedule.problem);
  std::size_t num_factors = 0;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (const StageId stage : schedule.ranks[rank].stages) {
      for (LayerId layer = layers.first(stage); layer < layers.end(stage); ++layer.value) {
        const std::string found =
            compare_layer(*run.programs()[rank], stage, layer, expected, first_step, num_factors);
        if (!found.empty()) return fmt::format("{} on rank {}", found, rank);
      }
    }
  }
  const bool is_kfac = schedule.problem.preconditioner == schedule::Preconditioner::Kfac;
  return is_kfac && num_factors == 0 ? "no K-FAC factors" : "";
}

}  // namespace plenum::pipeline
