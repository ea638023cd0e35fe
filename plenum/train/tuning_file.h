#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "plenum/kernels/matmul_choices.h"
#include "plenum/train/run_directory.h"

namespace plenum::train {

/// What the streams of a run chose by measuring, by the stream's name.
using Tuning = std::map<std::string, kernels::MatmulChoices>;

/// As docs/formats.md has it.
std::string print_tuning(const Tuning& tuning);
/// Throws UserError naming `source` for a text that is damaged or of a newer version.
Tuning parse_tuning(std::string_view text, const std::string& source);

/// A stream of a run, borrowed. Its name stays the same from process to process.
struct TunedStream {
  std::string name;
  const tensor::Stream& stream;
};

/// The tuning of a run in its directory: a process that resumes a run takes the choices of the one
/// before it, to the same bytes and without measuring again. A stream of the CPU has no choices: nothing
/// is read or written for it.
class TuningFile {
 public:
  explicit TuningFile(std::string path) : path_(std::move(path)) {}

  /// Gives the streams what the file holds, if there is one. Choices of another library or GPU are noted and
  /// left aside. Throws UserError for a file that is damaged.
  void restore(std::span<const TunedStream> streams, const Note& note);
  /// Writes what the streams have chosen, whole or not at all, unless the file holds just that.
  void save(std::span<const TunedStream> streams);

 private:
  std::string path_;
  Tuning written_;  ///< what the file holds
};

}  // namespace plenum::train
