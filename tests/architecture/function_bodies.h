#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace plenum::architecture {

/// A function that is defined in a file, from the line of its opening brace to that of its closing one.
/// Lines are counted from 1.
struct FunctionBody {
  std::string name;  ///< as it is written: `Trainer::run`, `TEST(Style, FilesAreShort)`; of a lambda empty
  std::size_t first_line = 0;
  std::size_t last_line = 0;
  bool is_device_code = false;  ///< marked __device__ or __global__

  std::size_t num_lines() const { return last_line - first_line + 1; }
};

/// The functions of a file in the code style of this project, members and lambdas of tables included. What
/// lies within a function, as a lambda or a local class, is part of it. Not a parser: it goes by braces and
/// by what stands before them.
std::vector<FunctionBody> function_bodies(const std::vector<std::string>& lines);

}  // namespace plenum::architecture
