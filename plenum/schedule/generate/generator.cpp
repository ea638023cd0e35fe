#include "plenum/schedule/generate/generator.h"

#include <algorithm>
#include <array>
#include <string>

#include "plenum/base/check.h"
#include "plenum/base/options.h"
#include "plenum/schedule/generate/chimera.h"
#include "plenum/schedule/generate/data_parallel.h"
#include "plenum/schedule/generate/gpipe.h"
#include "plenum/schedule/generate/interleaved.h"
#include "plenum/schedule/generate/one_forward_one_backward.h"
#include "plenum/schedule/generate/single.h"
#include "plenum/schedule/generate/zero_bubble_h1.h"

namespace plenum::schedule {
namespace {

constexpr std::array kGenerators = {
    Generator{.name = "single",
              .summary = "One rank, one stage",
              .generate = &generate_single,
              .mesh = Mesh::OneRank},
    Generator{.name = "data-parallel",
              .summary = "Every rank the whole model, gradients reduced as they come",
              .generate = &generate_data_parallel,
              .mesh = Mesh::Replicas},
    Generator{.name = "gpipe", .summary = "All forwards, then all backwards", .generate = &generate_gpipe},
    Generator{.name = "1f1b",
              .summary = "One forward, one backward in turn",
              .generate = &generate_one_forward_one_backward},
    Generator{.name = "interleaved",
              .summary = "One forward, one backward over several stages on every rank",
              .generate = &generate_interleaved,
              .has_chunks = true},
    Generator{.name = "chimera",
              .summary = "Two pipelines in opposite directions over the same ranks",
              .generate = &generate_chimera,
              .depth_multiple = 2},
    Generator{.name = "zb-h1",
              .summary = "Weight gradients held back to fill the bubble",
              .generate = &generate_zero_bubble_h1,
              .splits_backward = true},
};

}  // namespace

std::span<const Generator> all_generators() {
  return kGenerators;
}

const Generator& generator_named(std::string_view name) {
  const auto found = std::find_if(kGenerators.begin(), kGenerators.end(),
                                  [name](const Generator& generator) { return generator.name == name; });
  if (found != kGenerators.end()) return *found;
  std::vector<std::string> known;
  for (const Generator& generator : kGenerators) known.emplace_back(generator.name);
  base::fail_choice("schedule", std::string(name), known);
}

std::vector<std::uint16_t> divide_over_chunks(std::span<const std::uint16_t> rank_layers,
                                              std::size_t num_chunks) {
  std::vector<std::uint16_t> stage_layers;
  for (std::size_t chunk = 0; chunk < num_chunks; ++chunk) {
    for (const std::size_t layers : rank_layers) {
      base::require(layers >= num_chunks, "a rank needs a layer for each of its {} chunks: it has {}",
                    num_chunks, layers);
      const std::size_t end = (layers * (chunk + 1) + num_chunks - 1) / num_chunks;
      const std::size_t begin = (layers * chunk + num_chunks - 1) / num_chunks;
      stage_layers.push_back(static_cast<std::uint16_t>(end - begin));
    }
  }
  return stage_layers;
}

}  // namespace plenum::schedule
