#pragma once

#include <string_view>

namespace plenum::cli {

/// How the program ends where all did not go well.
inline constexpr int kUserErrorCode = 2;
/// Training was asked to stop before its end, and resumes from the checkpoint that it wrote. Batch systems
/// can start it again for this code alone: it is what HTCondor calls checkpoint_exit_code in its examples,
/// and what no other end of the program gives.
inline constexpr int kStoppedCode = 85;
inline constexpr int kInternalErrorCode = 70;
/// Training hung, and resumes from its last checkpoint if it is started again.
inline constexpr int kHangCode = 75;

/// Another process of the run failed, and this one ended because of it.
inline constexpr int kRankFailedCode = 69;

/// Says what hangs on standard error, and ends the process with kHangCode, without the destructors that would
/// wait for it.
[[noreturn]] void end_hanging_process(std::string_view what);

}  // namespace plenum::cli
