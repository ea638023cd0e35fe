#pragma once

namespace plenum::bench {

/// Bytes per second that a copy within the GPU's memory reads and writes. Takes 2 GiB of it.
double measure_copy_rate();

}  // namespace plenum::bench
