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
    Generator{"single", "One rank, one stage", &generate_single, false},
    Generator{"data-parallel", "Every rank the whole model, gradients reduced as they come",
              &generate_data_parallel, false},
    Generator{"gpipe", "All forwards, then all backwards", &generate_gpipe, true},
    Generator{"1f1b", "One forward, one backward in turn", &generate_one_forward_one_backward, true},
    Generator{"interleaved", "One forward, one backward over several stages on every rank",
              &generate_interleaved, true},
    Generator{"chimera", "Two pipelines in opposite directions over the same ranks", &generate_chimera, true},
    Generator{"zb-h1", "Weight gradients held back to fill the bubble", &generate_zero_bubble_h1, true},
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

}  // namespace plenum::schedule
