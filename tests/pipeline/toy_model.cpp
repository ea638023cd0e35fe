#include "tests/pipeline/toy_model.h"

#include <numeric>

#include "plenum/base/philox.h"

namespace plenum::pipeline {
namespace {

constexpr std::uint64_t kSeed = 2026;
constexpr std::size_t kTokensOfMicroBatch = 3;

std::size_t num_tokens(const schedule::Problem& problem, std::size_t micro_batch) {
  return problem.micro_batch_sizes.empty() ? kTokensOfMicroBatch : problem.micro_batch_sizes[micro_batch];
}

/// `count` numbers of [-scale, scale] that belong to (layer, index).
Values random_values(std::size_t count, double scale, std::size_t layer, std::size_t index) {
  const base::RandomFunction random(kSeed, base::Purpose::Initialisation);
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const base::PhiloxCounter bits =
        random(i, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(layer));
    values[i] = scale * (2 * base::to_unit_interval(bits) - 1);
  }
  return values;
}

}  // namespace

ToyModel toy_model_for(const schedule::Problem& problem) {
  ToyModel model;
  if (problem.num_factors > 0) model.maps_per_layer = problem.num_factors;
  return model;
}

std::vector<ToyParameter> toy_parameters(const ToyModel& model, const schedule::Problem& problem,
                                         std::size_t layer) {
  const std::size_t num_layers =
      std::accumulate(problem.stage_layers.begin(), problem.stage_layers.end(), std::size_t{0});
  const std::size_t table = model.vocabulary * model.width;
  constexpr std::size_t kOfTables = 0xFFFF;  // no layer has this number
  std::vector<ToyParameter> parameters;
  for (std::size_t map = 0; map < model.maps_per_layer; ++map) {
    parameters.push_back(
        {ParameterKind::Weight, map, random_values(model.width * model.width, 0.7, layer, 2 * map)});
    parameters.push_back({ParameterKind::Bias, map, random_values(model.width, 0.3, layer, 2 * map + 1)});
  }
  if (layer == 0) {
    parameters.push_back({ParameterKind::Embedding, 0, random_values(table, 0.8, kOfTables, 0)});
  }
  if (layer + 1 == num_layers) {
    const std::size_t index = problem.has_tied_parameters ? 0 : 1;
    parameters.push_back({ParameterKind::Decoder, 0, random_values(table, 0.8, kOfTables, index)});
  }
  return parameters;
}

std::vector<ToyToken> toy_tokens(const ToyModel& model, const schedule::Problem& problem, std::uint64_t step,
                                 std::size_t micro_batch) {
  const base::RandomFunction random(kSeed, base::Purpose::Order, step);
  std::vector<ToyToken> tokens(num_tokens(problem, micro_batch));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const base::PhiloxCounter bits = random(micro_batch, static_cast<std::uint32_t>(i));
    tokens[i] = {bits[0] % model.vocabulary, bits[1] % model.vocabulary};
  }
  return tokens;
}

std::size_t num_toy_tokens(const schedule::Problem& problem) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < problem.num_micro_batches; ++i) count += num_tokens(problem, i);
  return count;
}

}  // namespace plenum::pipeline
