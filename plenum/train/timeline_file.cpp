#include "plenum/train/timeline_file.h"

#include "plenum/io/file.h"
#include "plenum/trace/perfetto.h"
#include "plenum/trace/svg_drawing.h"

namespace plenum::train {

void require_timeline_path(const std::string& path) {
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
