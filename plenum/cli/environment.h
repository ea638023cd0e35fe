#pragma once

#include <string>
#include <vector>

#include "plenum/control/launch.h"

namespace plenum::cli {

/// Whether programs may print in colour: NO_COLOR is not set, or empty (no-color.org), and the terminal is no
/// dumb one (TERM).
bool color_is_welcome();

/// Who this process is among those of a run, as the variables of its launcher say.
control::Launch launch_of_environment();

/// All variables, as "NAME=value".
std::vector<std::string> whole_environment();

/// The GPUs that processes of this one may see (CUDA_VISIBLE_DEVICES, or all that the driver has), by the
/// names that CUDA knows them by. Without asking CUDA, which would hold to what it finds.
std::vector<std::string> visible_gpus();
/// Shows this process one of them alone. Before anything asks CUDA.
void show_gpu(const std::string& gpu);

}  // namespace plenum::cli
