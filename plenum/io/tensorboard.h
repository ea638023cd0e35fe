#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "plenum/io/append_file.h"

namespace plenum::io {

/// A value of one curve.
struct Scalar {
  std::string_view tag;  ///< "train/loss"
  float value = 0;
};

/// A new TensorBoard event file in a directory. A run that resumes writes another one; TensorBoard shows all
/// files of a directory as one.
class EventFile {
 public:
  /// Makes the directory where it is missing and names the file after time, host and process. Times are
  /// seconds since 1970. TensorBoard drops what earlier files hold of `first_step` and later ones: a run that
  /// resumes from a checkpoint writes them again.
  EventFile(const std::string& directory, std::string_view host, std::int64_t process_id, double time_seconds,
            std::int64_t first_step);

  /// Appends the scalars of one step as one record, in memory until flush().
  void append(std::int64_t step, double time_seconds, std::span<const Scalar> scalars);
  /// Hands everything to the kernel, so that TensorBoard sees it.
  void flush() { file_.flush(); }
  /// Returns when everything that was flushed before is on the disk.
  void sync() const { file_.sync(); }

  const std::string& path() const { return file_.path(); }

 private:
  void append_record(std::string_view event);

  AppendFile file_;
};

}  // namespace plenum::io
