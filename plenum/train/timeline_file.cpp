#include "plenum/train/timeline_file.h"

#include <filesystem>
#include <system_error>

#include "plenum/io/directory.h"
#include "plenum/io/file.h"
#include "plenum/trace/perfetto.h"
#include "plenum/trace/svg_drawing.h"

namespace plenum::train {
namespace {

namespace fs = std::filesystem;

/// Whether a file lies in a directory, neither of which need be there.
bool lies_in(const fs::path& directory, const fs::path& file) {
  std::error_code error;
  const fs::path place = fs::weakly_canonical(fs::absolute(file), error);
  return !error && place == fs::weakly_canonical(fs::absolute(directory / file.filename()), error);
}

}  // namespace

void require_timeline_path(const std::string& path, const std::string& run_directory) {
  if (!io::path_exists(run_directory) && lies_in(run_directory, path)) return;
  const io::AtomicFile never_committed(path);
}

void write_timeline(const std::string& path, const trace::Timeline& timeline) {
  if (path.ends_with(".svg")) {
    io::write_file(path, trace::draw_svg(timeline));
    return;
  }
  io::AtomicFile file(path);
  trace::write_trace(timeline, [&file](std::string_view piece) { file.write(piece); });
  file.commit();
}

}  // namespace plenum::train
