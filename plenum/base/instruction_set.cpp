#include "plenum/base/instruction_set.h"

#include "plenum/base/check.h"

#include "plenum_build_info.h"

namespace plenum::base {

std::string_view kernel_instruction_set() {
  return generated::kKernelInstructionSet;
}

bool has_instruction_set(std::string_view level) {
  if (level == "x86-64-v2") return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  if (level == "x86-64-v3") {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  }
  check(level == "x86-64-v4", "not a level of x86-64: {}", level);
  return has_instruction_set("x86-64-v3") && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
}

void require_kernel_instruction_set() {
  const std::string_view level = kernel_instruction_set();
  if (has_instruction_set(level)) return;
  fail(
      "the kernels of this build need a processor of the level {}; build here, or with "
      "-DPLENUM_ISA={}",
      level, has_instruction_set("x86-64-v3") ? "x86-64-v3" : "x86-64-v2");
}

}  // namespace plenum::base
