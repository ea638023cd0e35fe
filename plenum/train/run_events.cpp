#include "plenum/train/run_events.h"

#include <chrono>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/io/append_file.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"

namespace plenum::train {
namespace {

using nlohmann::ordered_json;

/// Events that are kept while there is no room for them; of more the oldest are lost.
constexpr std::size_t kMostPending = 1000;

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The whole lines of the file: behind them lies what a killed process began to write.
std::uint64_t bytes_of_whole_lines(const std::string& path) {
  if (!io::path_exists(path)) return 0;
  const io::MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  return text.rfind('\n') + 1;
}

ordered_json event_json(std::uint64_t step, std::string_view kind, std::string_view text,
                        const ordered_json& details) {
  ordered_json object = {{"step", step}, {"time", unix_seconds()}, {"kind", kind}, {"text", text}};
  if (details.is_object()) object.update(details);
  return object;
}

/// As JSON, whatever bytes a name on disk had.
std::string dump(const ordered_json& object) {
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

void RunEvents::open(std::string path, HangWatch& watch, const Beginning& beginning) {
  path_ = std::move(path);
  watch_ = &watch;
  step_ = beginning.step;
  for (ordered_json& earlier : pending_) earlier["step"] = step_;
  const bool is_resumed = !beginning.checkpoint.empty();
  pending_.insert(pending_.begin(),
                  event_json(step_, is_resumed ? "resume" : "begin",
                             is_resumed ? "from " + beginning.checkpoint : "", beginning.details));
  write();
}

void RunEvents::add(std::string_view kind, std::string_view text, const ordered_json& details) {
  if (pending_.size() >= kMostPending) pending_.erase(pending_.begin());
  pending_.push_back(event_json(step_, kind, text, details));
  write();
}

void RunEvents::write() {
  if (path_.empty() || pending_.empty()) return;
  const HangWatch::Activity writing(*watch_, "writing events hangs: nothing has been written");
  try {
    io::AppendFile file(path_, bytes_of_whole_lines(path_));
    for (const ordered_json& event : pending_) file.append(dump(event));
    file.flush();
  } catch (const base::UserError&) {
    return;
  }
  pending_.clear();
}

ordered_json RunEvents::memory_details() const {
  return {{"used_bytes", memory_.used_bytes()}};
}

void RunEvents::on_begin(const RunSummary& summary) {
  memory_ = summary.device_memory;
  observer_.on_begin(summary);
}

void RunEvents::on_step(const StepReport& report) {
  step_ = report.step;
  observer_.on_step(report);
}

void RunEvents::on_skip(std::string_view line) {
  add("skipped", line);
  observer_.on_skip(line);
}

void RunEvents::on_evaluation(std::uint64_t step, const Evaluation& evaluation) {
  observer_.on_evaluation(step, evaluation);
}

void RunEvents::on_checkpoint(std::uint64_t step, const std::string& path) {
  add("checkpoint", path, memory_details());
  observer_.on_checkpoint(step, path);
}

void RunEvents::on_choice(std::string_view line) {
  add("choice", line);
  observer_.on_choice(line);
}

void RunEvents::on_note(std::string_view line) {
  add("note", line);
  observer_.on_note(line);
}

void RunEvents::on_table(std::string_view text) {
  observer_.on_table(text);
}

void RunEvents::on_hang(std::string_view line) {
  observer_.on_hang(line);
}

}  // namespace plenum::train
