#pragma once

#include <span>
#include <string>
#include <string_view>

#include "plenum/base/function_ref.h"
#include "plenum/io/file_record.h"

namespace plenum::io {

enum class Replace : bool { No, Yes };

/// A directory that appears under its name whole or not at all: files go to `<path>.partial-…`, each is on
/// the disk when write() returns, and commit() renames. Destroyed without commit() it leaves nothing. Every
/// failure (a full disk above all) throws UserError.
class AtomicDirectory {
 public:
  /// Makes the directories above `path` where they are missing. Throws UserError if something has the name
  /// already, but for an empty directory, or any directory that is to be replaced. One that a crash left as
  /// `<path>.replaced` gets its name back first, to be replaced in turn.
  explicit AtomicDirectory(std::string path, Replace replace = Replace::No);
  ~AtomicDirectory();
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;

  /// Takes bytes that follow those before.
  using Sink = base::FunctionRef<void(std::string_view)>;
  /// Writes the file `name` with the bytes that `produce` hands to its sink, which are checksummed on the way
  /// and need not be kept.
  FileRecord write(const std::string& name, base::FunctionRef<void(Sink)> produce);
  FileRecord write(const std::string& name, std::string_view bytes);

  /// Where the files lie until commit().
  const std::string& partial_path() const { return partial_path_; }

  /// Gives the directory its name. One that it replaces is called replaced_name(path) for the moment between
  /// two renames, and keeps its name if the second fails.
  void commit();

 private:
  /// Throws as the constructor does; true if there is nothing to replace.
  bool require_free() const;

  std::string path_;
  Replace replace_;
  std::string partial_path_;  ///< empty after commit
};

/// Throws UserError unless a new directory may take the place of the one at `path`: it is missing or empty,
/// or it is to be replaced and holds nothing but files of the names that its maker writes. Others are named.
void require_replaceable(const std::string& path, Replace replace,
                         std::span<const std::string_view> own_names);

/// What the directory at `path` is called while another takes its place: `<path>.replaced`.
std::string replaced_name(const std::string& path);

/// Gives a directory that a crash inside commit() left under replaced_name its name back, or removes it where
/// the new one had arrived.
void restore_replaced(const std::string& path);

}  // namespace plenum::io
