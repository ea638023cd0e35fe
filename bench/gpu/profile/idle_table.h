#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/gpu/profile/kernel_records.h"

namespace plenum::bench {

/// Of the time from the first record to the end of the last, when nothing ran.
std::uint64_t idle_ns(const std::vector<KernelRecord>& records);

/// When nothing ran, in tables of at most 100 columns: how long the pauses are, and between which kernels the
/// most time is lost. Numbers are those of one step.
std::string idle_table(const std::vector<KernelRecord>& records, std::int64_t num_steps);

}  // namespace plenum::bench
