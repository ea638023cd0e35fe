#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace plenum::cli {

/// Appends the output for some whole lines of input to a string. A line ends with "\n", the last one of all
/// may lack it.
using LineTransform = std::function<void(std::string_view lines, std::string& output)>;

/// Sends the lines of the descriptor `input` through transforms to the descriptor `output`, in order. Each of
/// `num_threads` threads has a transform of its own, made by `make_transform`. Lines are passed on in large
/// blocks, but at once when the input pauses. Memory is bounded by the blocks under way and the longest line.
/// Returns quietly when nobody reads the output any more; throws UserError on other failures.
void transform_lines(int input, int output, int num_threads,
                     const std::function<LineTransform()>& make_transform);

}  // namespace plenum::cli
