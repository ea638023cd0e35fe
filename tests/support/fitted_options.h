#pragma once

#include "plenum/schedule/generate/generator.h"

namespace plenum::test {

/// The options with the mesh that a generator can have.
inline schedule::GeneratorOptions fitted(const schedule::Generator& generator,
                                         schedule::GeneratorOptions options) {
  if (!generator.is_pipeline()) options.depth = 1;
  if (generator.mesh == schedule::Mesh::OneRank) options.num_replicas = 1;
  options.depth +=
      (generator.depth_multiple - options.depth % generator.depth_multiple) % generator.depth_multiple;
  return options;
}

/// Whether a generator can have the mesh that the options ask for.
inline bool fits(const schedule::Generator& generator, const schedule::GeneratorOptions& options) {
  const schedule::GeneratorOptions possible = fitted(generator, options);
  return possible.depth == options.depth && possible.num_replicas == options.num_replicas;
}

}  // namespace plenum::test
