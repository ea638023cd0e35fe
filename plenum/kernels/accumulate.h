#pragma once

#include <cstdint>

namespace plenum::kernels {

/// Whether a result is added to what lies at its destination or overwrites it.
enum class Accumulate : std::uint8_t { No, Yes };

}  // namespace plenum::kernels
