#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "plenum/base/units.h"
#include "plenum/report/bar_chart.h"
#include "plenum/report/event_table.h"
#include "plenum/report/html.h"
#include "plenum/report/page.h"
#include "plenum/report/run_curves.h"
#include "plenum/report/run_figures.h"
#include "plenum/report/step_chart.h"

namespace plenum::report {
namespace {

std::string seconds_text(double seconds) {
  return base::format_seconds(std::max(1e-3, seconds));
}

std::string header_html(const RunRecord& run, const RunFigures& figures) {
  const std::string state = state_of(run);
  std::string what = run.text("/model/name");
  if (figures.num_parameters > 0) what += fmt::format(", {} parameters", count_text(figures.num_parameters));
  const double num_steps = std::max(run.steps.num_steps, 1.0);
  std::string html = fmt::format(
      "<header><p class=\"brand\">plenum</p><h1>{}</h1><p class=\"sub\">{}<span class=\"state "
      "{}\">{}</span></p>\n",
      escape(run.name), escape(what),
      run.is_locked       ? "on"
      : run.is_finished() ? "done"
                          : "off",
      escape(state));
  if (run.steps.num_steps > 0) {
    const double share = std::min(1.0, figures.num_steps / num_steps);
    html += fmt::format(
        "<p class=\"sub\">step {0} of {1}, epoch {2:.2f}, {3} of training</p>\n"
        "<div class=\"progress\" role=\"progressbar\" aria-label=\"steps done\" aria-valuemin=\"0\" "
        "aria-valuemax=\"100\" "
        "aria-valuenow=\"{4:.0f}\"><svg viewBox=\"0 0 1000 1\" preserveAspectRatio=\"none\" "
        "aria-hidden=\"true\">"
        "<rect class=\"lane\" width=\"1000\" height=\"1\"/><rect class=\"block c0\" width=\"{5:.0f}\" "
        "height=\"1\"/></svg></div>\n",
        count_text(figures.num_steps), count_text(run.steps.num_steps),
        std::isfinite(run.steps.epoch.back()) ? run.steps.epoch.back() : 0,
        seconds_text(figures.wall_seconds), 100 * share, 1000 * share);
  }
  html += "</header>\n";
  for (const std::string& fault : run.faults)
    html += fmt::format("<p class=\"fault\">{}</p>\n", escape(fault));
  return html;
}

std::string contents_html() {
  constexpr std::array<std::pair<const char*, const char*>, 9> kSections = {
      {{"curves", "Curves"},
       {"speed", "Speed"},
       {"data", "Data"},
       {"memory", "Memory"},
       {"ranks", "Ranks"},
       {"step", "Step"},
       {"events", "Events"},
       {"machine", "Machine"},
       {"configuration", "Configuration"}}};
  std::string html = "<nav aria-label=\"Sections\">";
  for (const auto& [id, name] : kSections) html += fmt::format("<a href=\"#{}\">{}</a>", id, name);
  return html + "</nav>\n";
}

std::string summary_html(const RunFigures& figures) {
  std::vector<Tile> tiles;
  if (figures.loss)
    tiles.push_back({"Training loss", number_text(*figures.loss), "mean of the last 20 steps"});
  const std::string best = fmt::format("best, at step {}", count_text(figures.best_step));
  if (figures.best_loss)
    tiles.push_back({"Held-out loss", number_text(*figures.best_loss),
                     figures.is_best_by_score ? "at the best score" : best});
  if (figures.accuracy)
    tiles.push_back({"Held-out score", percent_text(*figures.accuracy),
                     figures.accuracy_name + (figures.is_best_by_score ? ": " + best : " there")});
  if (figures.tokens_per_second)
    tiles.push_back({"Real tokens/s", count_text(*figures.tokens_per_second), "last 100 steps"});
  if (figures.peak_share)
    tiles.push_back({"Share of peak", percent_text(*figures.peak_share), "of matrix products here"});
  if (figures.padding_avoided)
    tiles.push_back({"Padding avoided", percent_text(*figures.padding_avoided), "of a padded batch"});
  if (figures.used_bytes) tiles.push_back({"Peak memory", bytes_text(*figures.used_bytes)});
  return tiles.empty() ? missing_html("No step has been done yet.") : tiles_html(tiles);
}

/// The chart of all scores and, where there are several, of all losses.
std::vector<std::string> evaluation_charts(const RunRecord& run, const std::vector<ChartMark>& marks) {
  const auto chart = [&](const char* title, const std::vector<std::string>& names, bool in_percent) {
    LineChart chart{.title = title, .unit = {}, .curves = {}, .marks = marks, .in_percent = in_percent};
    for (std::size_t i = 0; i < names.size(); ++i)
      chart.curves.push_back(evaluation_curve(run, names[i], spoken(names[i]), (i + 1) % kNumColors));
    return line_chart_html(chart);
  };
  const std::vector<std::string> scores = evaluated_scores(run);
  const bool are_accuracies =
      std::ranges::all_of(scores, [](const std::string& name) { return name.ends_with("accuracy"); });
  std::vector<std::string> charts = {
      chart(are_accuracies ? "Held-out accuracy" : "Held-out scores", scores, true)};
  const std::vector<std::string> losses = evaluated_losses(run);
  // Of two, one is the loss itself and the other its only part.
  if (losses.size() > 2) charts.push_back(chart("Held-out losses", losses, false));
  return charts;
}

std::string curves_section(const RunRecord& run) {
  const std::vector<ChartMark> marks = marks_of(run);
  LineChart loss{.title = "Loss", .unit = {}, .curves = {}, .marks = marks};
  loss.curves.push_back(step_curve(run, run.steps.loss, "each step", 0, Curve::Style::Pale));
  loss.curves.push_back(smooth_curve(run, run.steps.loss, "training, smoothed", 0));
  loss.curves.push_back(evaluation_curve(run, "loss", "held-out", 1));
  std::vector<std::string> charts = {line_chart_html(loss)};
  for (std::string& chart : evaluation_charts(run, marks)) charts.push_back(std::move(chart));
  charts.push_back(line_chart_html({.title = "Learning rate",
                                    .unit = {},
                                    .curves = {step_curve(run, run.steps.learning_rate, "learning rate", 2)},
                                    .marks = {},
                                    .from_zero = true}));
  charts.push_back(line_chart_html(
      {.title = "Gradient norm",
       .unit = {},
       .curves = {step_curve(run, run.steps.gradient_norm, "each step", 3, Curve::Style::Pale),
                  smooth_curve(run, run.steps.gradient_norm, "smoothed", 3)},
       .marks = marks,
       .scale = Scale::Logarithmic}));
  const std::string html = charts_html(charts, FirstChart::AsWideAsAll);
  return section_html("curves", "Curves", html.empty() ? missing_html("No step has been done yet.") : html);
}

/// What the wall time of the run went to.
std::string time_chart(const RunFigures& figures) {
  const double steps = std::min(figures.step_seconds, figures.wall_seconds);
  const double evaluations = std::min(figures.evaluation_seconds, figures.wall_seconds - steps);
  const double rest = figures.wall_seconds - steps - evaluations;
  return bar_chart_html({.title = "Training time",
                         .bars = {{.label = "",
                                   .parts = {{"steps", "c0", steps, seconds_text(steps)},
                                             {"evaluations", "c1", evaluations, seconds_text(evaluations)},
                                             {"checkpoints and the rest", "ms", rest, seconds_text(rest)}},
                                   .text = seconds_text(figures.wall_seconds)}},
                         .whole = 0});
}

std::string speed_section(const RunRecord& run, const RunFigures& figures) {
  const std::vector<double> speeds = tokens_per_second(run);
  std::string html = line_chart_html({.title = "Real tokens per second",
                                      .unit = {},
                                      .curves = {step_curve(run, speeds, "each step", 0, Curve::Style::Pale),
                                                 smooth_curve(run, speeds, "smoothed", 0)},
                                      .marks = {},
                                      .from_zero = true});
  const std::vector<double> shares = peak_shares(run);
  const std::string share_chart = line_chart_html(
      {.title = "Share of peak",
       .unit = "share",
       .curves = {step_curve(run, shares, "each step", 4, Curve::Style::Pale),
                  smooth_curve(run, shares, "smoothed", 4)},
       .marks = {},
       .from_zero = true,
       .in_percent = true,
       .note =
           fmt::format("Useful operations per second over what matrix products reach on this machine, {}.",
                       flops_text(run.number("/product_flops").value_or(0)))});
  html = charts_html({html, share_chart});
  if (share_chart.empty())
    html += missing_html(
        "The rate of matrix products, and so the share of peak, is not recorded; plenum train without "
        "--quiet "
        "measures it.");
  if (figures.wall_seconds > 0) html += time_chart(figures);
  return section_html("speed", "Speed", html);
}

std::string lengths_chart(const RunRecord& run) {
  const RunEvent* const begin = run.beginning();
  if (begin == nullptr) return "";
  const std::vector<double> bins = numbers_in(begin->details, "/lengths/bins");
  const double width = run.number("/lengths/bin_width").value_or(1);
  std::vector<std::string> labels;
  std::vector<std::string> marks;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const double from = static_cast<double>(i) * width + 1;
    const double to = from + width - 1;
    labels.push_back(width > 1 ? fmt::format("{:.0f} to {:.0f}", from, to) : fmt::format("{:.0f}", from));
    marks.push_back(fmt::format("{:.0f}", to));
  }
  const double sequences = run.number("/lengths/sequences").value_or(0);
  const double tokens = run.number("/lengths/tokens").value_or(0);
  const double longest = run.number("/lengths/max_length").value_or(0);
  if (sequences <= 0 || longest <= 0) return "";
  return column_chart_html(
      {.title = "Lengths of the training sequences",
       .size_name = "tokens in a sequence",
       .count_name = "sequences",
       .labels = labels,
       .marks = marks,
       .counts = bins,
       .note = fmt::format(
           "{} sequences, {} tokens, {:.1f} in the mean. Padded to {}, {} of all positions would be padding.",
           count_text(sequences), count_text(tokens), tokens / sequences, count_text(longest),
           percent_text(1 - tokens / sequences / longest))});
}

std::string packing_html(const RunRecord& run) {
  const std::optional<double> packs = run.number("/packing/packs");
  if (!packs) return "";
  const double bound = run.number("/packing/bound").value_or(0);
  return "<h3>Packing plan</h3>\n" +
         tiles_html(
             {{"Packs", count_text(*packs),
               fmt::format("of {} tokens", count_text(run.number("/packing/capacity").value_or(0)))},
              {"No plan has fewer than", count_text(bound),
               fmt::format("proof: {}", run.text("/packing/proof"))},
              {"Above the bound", count_text(*packs - bound),
               bound > 0 ? percent_text(*packs / bound - 1) : ""},
              {"Filled", percent_text(run.number("/packing/efficiency").value_or(0)), "of all positions"}});
}

std::string pack_sizes_chart(const RunRecord& run) {
  const RunEvent* const begin = run.beginning();
  if (begin == nullptr) return "";
  std::vector<double> counts = numbers_in(begin->details, "/packing/packs_of_depth");
  if (!counts.empty()) counts.erase(counts.begin());  // no pack is empty
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < counts.size(); ++i) labels.push_back(fmt::format("{}", i + 1));
  return column_chart_html({.title = "Sequences in a pack",
                            .size_name = "sequences in a pack",
                            .count_name = "packs",
                            .labels = labels,
                            .marks = labels,
                            .counts = counts});
}

std::string data_section(const RunRecord& run, const RunFigures& figures) {
  std::string html;
  if (figures.padding && run.number("/lengths/max_length")) {
    const double computed = *figures.padding;
    const double avoided = figures.padding_avoided.value_or(0);
    const double padded_share = 1 - avoided;  // of the rows of a padded batch that were computed
    html += bar_chart_html(
        {.title = "Rows of a padded batch",
         .bars = {{.label = "",
                   .parts = {{"real tokens", "c0", padded_share * (1 - computed),
                              percent_text(padded_share * (1 - computed))},
                             {"padding that was computed", "c1", padded_share * computed,
                              percent_text(padded_share * computed)},
                             {"padding avoided", "idle", avoided, percent_text(avoided)}},
                   .text = percent_text(avoided) + " avoided"}},
         .whole = 1,
         .note = fmt::format("What this run trained on, had each sequence been padded to {} tokens.",
                             count_text(run.number("/lengths/max_length").value_or(0)))});
  } else if (figures.padding) {
    html += missing_html(
        fmt::format("{} of the computed rows were padding; how long sequences may be is not recorded.",
                    percent_text(*figures.padding)));
  }
  html += packing_html(run) + charts_html({lengths_chart(run), pack_sizes_chart(run)});
  return section_html("data", "Data and padding", html.empty() ? missing_html("Not recorded.") : html);
}

std::string memory_section(const RunRecord& run, const RunFigures& figures) {
  const RunEvent* const begin = run.beginning();
  const std::optional<double> planned = run.number("/memory/planned_bytes");
  if (begin == nullptr || !planned) return section_html("memory", "Memory", missing_html("Not recorded."));
  BarChart chart{.title = "Planned memory by purpose", .bars = {}, .has_legend = false};
  double sum = 0;
  for (const nlohmann::json& line : list_in(begin->details, "/memory/lines")) {
    const double bytes = number_in(line, "/bytes").value_or(0);
    const std::string purpose = text_in(line, "/purpose");
    chart.bars.push_back(
        {.label = purpose, .parts = {{purpose, "c0", bytes, bytes_text(bytes)}}, .text = bytes_text(bytes)});
    sum += bytes;
  }
  if (sum > *planned * 1.001)
    chart.note =
        "Purposes share memory whose use does not overlap in time, so the sum is more than the plan.";
  std::vector<Tile> tiles = {{"Planned", bytes_text(*planned), "before the first step"}};
  if (const std::optional<double> outside = run.number("/memory/outside_bytes"); outside && *outside > 0)
    tiles.push_back({"Beside the plan", bytes_text(*outside), "program and libraries"});
  if (figures.used_bytes)
    tiles.push_back({"Peak", bytes_text(*figures.used_bytes),
                     run.text("/memory/device") == "cuda" ? "of the GPU" : "of the process"});
  return section_html("memory", "Memory", tiles_html(tiles) + bar_chart_html(chart));
}

std::string work_chart(const RunRecord& run) {
  const RunEvent* const begin = run.beginning();
  if (begin == nullptr) return "";
  const std::vector<double> work = numbers_in(begin->details, "/balance/work_of_replica");
  if (work.size() < 2) return "";
  constexpr std::size_t kMostBars = 32;
  BarChart chart{.title = "Work of each replica, of the mean", .bars = {}, .has_legend = false};
  for (std::size_t i = 0; i < std::min(kMostBars, work.size()); ++i)
    chart.bars.push_back({.label = fmt::format("replica {}", i),
                          .parts = {{"work", "c0", work[i], percent_text(work[i])}},
                          .text = percent_text(work[i])});
  chart.note = fmt::format(
      "As divided before training, mean over {:.0f} steps; in a step the busiest has {} more than the mean.",
      run.number("/balance/steps").value_or(1), percent_text(run.number("/balance/busiest").value_or(1) - 1));
  if (work.size() > kMostBars) chart.note += fmt::format(" {} more are not drawn.", work.size() - kMostBars);
  return bar_chart_html(chart);
}

std::string ranks_section(const RunRecord& run) {
  std::string html;
  if (run.step_times) html += rank_shares_html(*run.step_times);
  html += work_chart(run);
  return section_html("ranks", "Balance over ranks", html.empty() ? missing_html("Not recorded.") : html);
}

std::string step_section(const RunRecord& run) {
  if (!run.step_times)
    return section_html(
        "step", "A step, predicted and measured",
        missing_html(
            "Not recorded: no step was measured. plenum train without --quiet predicts and measures one."));
  const StepTimes& times = *run.step_times;
  const std::string source = times.prediction == "machine"
                                 ? "how fast this machine was measured to be before training"
                                 : "how long the same actions took in earlier steps";
  return section_html("step", "A step, predicted and measured",
                      fmt::format("<p>Predicted from {}.</p>\n", escape(source)) + breakdown_html(times) +
                          step_timeline_html(times) + prediction_table_html(times));
}

/// Rows of name and value; what is empty is left out.
std::string facts_html(const char* caption, const std::vector<std::pair<const char*, std::string>>& facts) {
  Table table{.caption = caption, .header = {}, .rows = {}, .cells = Table::Cells::Texts};
  for (const auto& [name, value] : facts)
    if (!value.empty()) table.rows.push_back({name, value});
  return table.rows.empty() ? missing_html("Not recorded.") : table_html(table);
}

std::string machine_section(const RunRecord& run) {
  const auto count = [&](const char* pointer) {
    const std::optional<double> number = run.number(pointer);
    return number && *number > 0 ? count_text(*number) : "";
  };
  const std::optional<double> memory = run.number("/machine/memory_bytes");
  const std::optional<double> product_flops = run.number("/product_flops");
  const std::optional<double> predicted = run.number("/predicted_step_seconds");
  return section_html(
      "machine", "Machine",
      facts_html(
          "Machine of the newest process",
          {{"processor", run.text("/machine/cpu")},
           {"cores", count("/machine/cores")},
           {"memory", memory ? bytes_text(*memory) : ""},
           {"GPU", run.text("/machine/gpu")},
           {"driver", run.text("/machine/driver")},
           {"processes", count("/machine/processes")},
           {"ranks", count("/layout/ranks")},
           {"threads of a rank", count("/layout/threads_per_rank")},
           {"ranks that hold a model", count("/layout/ranks_per_model")},
           {"pipeline", run.text("/layout/pipeline")},
           {"micro-batches of a rank", count("/layout/micro_batches_per_rank")},
           {"matrix products reach", product_flops && *product_flops > 0 ? flops_text(*product_flops) : ""},
           {"predicted step", predicted && *predicted > 0 ? base::format_seconds(*predicted) : ""},
           {"plenum", run.text("/program/version")},
           {"build", run.text("/program/build")},
           {"compiler", run.text("/program/compiler")},
           {"CUDA", run.text("/program/cuda")}}));
}

std::string options_section(const RunRecord& run) {
  Table table{.caption = "Options of the run", .header = {}, .rows = {}, .cells = Table::Cells::Texts};
  for (const ConfigOption& option : run.options)
    if (!option.value.empty()) table.rows.push_back({option.name, option.value});
  return section_html("configuration", "Configuration",
                      table.rows.empty() ? missing_html("Not recorded.") : table_html(table));
}

}  // namespace

std::string run_page(const RunRecord& run, const PageOptions& options) {
  const RunFigures figures = figures_of(run);
  std::string content = header_html(run, figures) + contents_html() + "<main>\n";
  content += section_html("summary", "Summary", summary_html(figures));
  content += curves_section(run) + speed_section(run, figures) + data_section(run, figures) +
             memory_section(run, figures) + ranks_section(run) + step_section(run);
  content += section_html("events", "Events", events_html(run));
  content += machine_section(run) + options_section(run);
  return page_html(run.name + ": plenum report", content + "</main>\n", options);
}

}  // namespace plenum::report
