#include "plenum/report/event_table.h"

#include <ctime>
#include <set>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "plenum/report/html.h"

namespace plenum::report {
namespace {

constexpr std::size_t kMostEvents = 300;

struct EventRow {
  double step = 0;
  double time = 0;
  std::string kind;
  std::string text;
};

std::string time_text(double seconds) {
  constexpr double kYear10000 = 253402300800;
  if (!(seconds > 0 && seconds < kYear10000)) return "";
  const auto time = static_cast<std::time_t>(seconds);
  std::tm local{};
  ::localtime_r(&time, &local);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
}

/// What a process that began had to say of itself.
std::string beginning_text(const RunEvent& event) {
  const auto text = [&](const char* pointer) { return text_in(event.details, pointer); };
  std::string line = event.text;
  const auto add = [&line](const std::string& part) {
    if (!part.empty()) line += (line.empty() ? "" : "; ") + part;
  };
  add(text("/machine/gpu").empty() ? text("/machine/cpu") : text("/machine/gpu"));
  if (const auto ranks = number_in(event.details, "/layout/ranks"))
    add(fmt::format("{} {}", *ranks, *ranks == 1 ? "rank" : "ranks"));
  add("plenum " + text("/program/version"));
  return line;
}

std::vector<EventRow> rows_of(const RunRecord& run) {
  std::vector<EventRow> rows;
  bool is_under_way = false;
  std::set<std::uint64_t> skipped;
  for (const RunEvent& event : run.events) {
    if (event.begins_process() && is_under_way)
      rows.push_back({rows.back().step, 0, "killed",
                      "the process ended without a word: it was killed, or its machine went down"});
    if (event.begins_process()) is_under_way = true;
    if (event.ends_process()) is_under_way = false;
    if (event.kind == "skipped") skipped.insert(static_cast<std::uint64_t>(event.step));
    rows.push_back(
        {event.step, event.time, event.kind, event.begins_process() ? beginning_text(event) : event.text});
  }
  if (is_under_way && !run.is_locked && !run.is_finished())
    rows.push_back(
        {rows.back().step, 0, "killed", "the process ended without a word, or runs on another machine"});
  // Runs of earlier versions keep no events.
  for (const std::uint64_t step : run.steps.skipped) {
    if (!skipped.contains(step))
      rows.push_back({static_cast<double>(step), 0, "skipped", "the loss or the gradient was not finite"});
  }
  return rows;
}

}  // namespace

std::string events_html(const RunRecord& run) {
  std::vector<EventRow> rows = rows_of(run);
  if (rows.empty()) return missing_html(run.events.empty() ? "Not recorded." : "None.");
  std::string html;
  if (rows.size() > kMostEvents) {
    const auto first = rows.begin() + kMostEvents / 3;
    const std::size_t num_left_out = rows.size() - kMostEvents;
    rows.erase(first, first + static_cast<std::ptrdiff_t>(num_left_out));
    html += fmt::format("<p class=\"note\">{} events between the first and the last ones are left out.</p>\n",
                        num_left_out);
  }
  Table table{
      .caption = "Events", .header = {"step", "time", "event", ""}, .rows = {}, .cells = Table::Cells::Texts};
  for (EventRow& row : rows)
    table.rows.push_back(
        {count_text(row.step), time_text(row.time), std::move(row.kind), std::move(row.text)});
  return html + table_html(table);
}

}  // namespace plenum::report
