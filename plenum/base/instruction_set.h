#pragma once

#include <string_view>

namespace plenum::base {

/// The level of x86-64 that the kernels of this build were compiled for: x86-64-v2, -v3 or -v4.
std::string_view kernel_instruction_set();

/// Whether this processor has all instructions of a level. Throws InternalError for any other name.
bool has_instruction_set(std::string_view level);

/// Throws UserError unless this processor can run the kernels.
void require_kernel_instruction_set();

}  // namespace plenum::base
