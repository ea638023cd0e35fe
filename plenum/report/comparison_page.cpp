#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "plenum/base/units.h"
#include "plenum/report/html.h"
#include "plenum/report/page.h"
#include "plenum/report/run_curves.h"
#include "plenum/report/run_figures.h"

namespace plenum::report {
namespace {

using Runs = std::vector<RunRecord>;

/// A curve of each run over those of the others.
std::string curves_of(const Runs& runs, LineChart chart,
                      const std::function<Curve(const RunRecord&, std::size_t)>& curve_of) {
  for (std::size_t i = 0; i < runs.size(); ++i) chart.curves.push_back(curve_of(runs[i], i));
  return line_chart_html(chart);
}

std::vector<std::string> evaluation_charts(const Runs& runs) {
  std::vector<std::string> names;
  for (const RunRecord& run : runs) {
    for (std::vector<std::string> of_run : {evaluated_losses(run), evaluated_scores(run)})
      for (std::string& name : of_run)
        if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  // Of two losses, one is the loss itself and the other its only part.
  if (std::ranges::count_if(names, is_loss) == 2)
    std::erase_if(names, [](const std::string& name) { return is_loss(name) && name != "loss"; });
  std::vector<std::string> charts;
  for (const std::string& name : names) {
    charts.push_back(curves_of(
        runs, {.title = "Held-out " + spoken(name), .unit = {}, .curves = {}, .in_percent = is_score(name)},
        [&](const RunRecord& run, std::size_t i) { return evaluation_curve(run, name, run.name, i); }));
  }
  return charts;
}

std::string curves_section(const Runs& runs) {
  std::vector<std::string> charts;
  const auto add = [&](LineChart chart, std::vector<double> (*values_of)(const RunRecord&)) {
    chart.title += ", smoothed";
    charts.push_back(curves_of(runs, std::move(chart), [&](const RunRecord& run, std::size_t i) {
      return smooth_curve(run, values_of(run), run.name, i);
    }));
  };
  add({.title = "Training loss", .unit = {}, .curves = {}},
      [](const RunRecord& run) { return run.steps.loss; });
  for (std::string& chart : evaluation_charts(runs)) charts.push_back(std::move(chart));
  add({.title = "Real tokens per second", .unit = {}, .curves = {}, .from_zero = true}, tokens_per_second);
  add({.title = "Share of peak", .unit = {}, .curves = {}, .from_zero = true, .in_percent = true},
      peak_shares);
  charts.push_back(curves_of(runs, {.title = "Learning rate", .unit = {}, .curves = {}, .from_zero = true},
                             [](const RunRecord& run, std::size_t i) {
                               return step_curve(run, run.steps.learning_rate, run.name, i);
                             }));
  const std::string html = charts_html(charts, FirstChart::AsWideAsAll);
  return section_html("curves", "Curves", html.empty() ? missing_html("No run has done a step yet.") : html);
}

std::string optional_text(const std::optional<double>& number,
                          const std::function<std::string(double)>& text) {
  return number ? text(*number) : "not recorded";
}

struct ResultRow {
  const char* name;
  std::function<std::string(const RunRecord&, const RunFigures&)> text;
};

std::vector<ResultRow> result_rows() {
  return {
      {"state", [](const RunRecord& run, const RunFigures&) { return state_of(run); }},
      {"steps done", [](const RunRecord&, const RunFigures& f) { return count_text(f.num_steps); }},
      {"tokens trained on", [](const RunRecord&, const RunFigures& f) { return count_text(f.tokens); }},
      {"training time",
       [](const RunRecord&, const RunFigures& f) {
         return base::format_seconds(std::max(1e-3, f.wall_seconds));
       }},
      {"training loss, last 20 steps",
       [](const RunRecord&, const RunFigures& f) { return optional_text(f.loss, number_text); }},
      {"held-out loss, best evaluation",
       [](const RunRecord&, const RunFigures& f) { return optional_text(f.best_loss, number_text); }},
      {"at step",
       [](const RunRecord&, const RunFigures& f) { return f.best_loss ? count_text(f.best_step) : ""; }},
      {"score there",
       [](const RunRecord&, const RunFigures& f) {
         return optional_text(f.accuracy,
                              [&](double score) { return percent_text(score) + " " + f.accuracy_name; });
       }},
      {"tokens/s, mean",
       [](const RunRecord&, const RunFigures& f) {
         return optional_text(f.mean_tokens_per_second, count_text);
       }},
      {"share of peak, last 100 steps",
       [](const RunRecord&, const RunFigures& f) { return optional_text(f.peak_share, percent_text); }},
      {"padding computed",
       [](const RunRecord&, const RunFigures& f) { return optional_text(f.padding, percent_text); }},
      {"padding avoided",
       [](const RunRecord&, const RunFigures& f) { return optional_text(f.padding_avoided, percent_text); }},
      {"planned memory",
       [](const RunRecord& run, const RunFigures&) {
         return optional_text(run.number("/memory/planned_bytes"), bytes_text);
       }},
      {"peak memory",
       [](const RunRecord&, const RunFigures& f) { return optional_text(f.used_bytes, bytes_text); }},
      {"resumed",
       [](const RunRecord&, const RunFigures& f) { return count_text(static_cast<double>(f.num_resumed)); }},
      {"skipped steps",
       [](const RunRecord&, const RunFigures& f) { return count_text(static_cast<double>(f.num_skipped)); }},
      {"processor", [](const RunRecord& run, const RunFigures&) {
         const std::string gpu = run.text("/machine/gpu");
         const std::string cpu = run.text("/machine/cpu");
         return !gpu.empty() ? gpu : !cpu.empty() ? cpu : std::string("not recorded");
       }}};
}

std::vector<std::string> header_of(const Runs& runs) {
  std::vector<std::string> header = {""};
  for (const RunRecord& run : runs) header.push_back(run.name);
  return header;
}

std::string results_section(const Runs& runs) {
  std::vector<RunFigures> figures;
  for (const RunRecord& run : runs) figures.push_back(figures_of(run));
  Table table{.caption = "What the runs came to", .header = header_of(runs), .rows = {}};
  for (const ResultRow& row : result_rows()) {
    table.rows.push_back({row.name});
    for (std::size_t i = 0; i < runs.size(); ++i) table.rows.back().push_back(row.text(runs[i], figures[i]));
  }
  return section_html("results", "Results", table_html(table));
}

std::string value_of(const RunRecord& run, const std::string& name) {
  const auto option = std::ranges::find(run.options, name, &ConfigOption::name);
  return option == run.options.end() ? "not set" : option->value;
}

std::string options_section(const Runs& runs) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const RunRecord& run : runs)
    for (const ConfigOption& option : run.options)
      if (seen.insert(option.name).second) names.push_back(option.name);
  Table table{.caption = "Options in which the runs differ",
              .header = header_of(runs),
              .rows = {},
              .cells = Table::Cells::Texts};
  for (const std::string& name : names) {
    std::set<std::string> values;
    std::vector<std::string> row = {name};
    for (const RunRecord& run : runs) values.insert(row.emplace_back(value_of(run, name)));
    if (values.size() > 1) table.rows.push_back(std::move(row));
  }
  return section_html("options", "Options that differ",
                      table.rows.empty() ? missing_html("All options are the same.") : table_html(table));
}

}  // namespace

std::string comparison_page(const std::vector<RunRecord>& runs, const PageOptions& options) {
  std::string title;
  for (const RunRecord& run : runs) title += (title.empty() ? "" : ", ") + run.name;
  std::string content = fmt::format(
      "<header><p class=\"brand\">plenum</p><h1>{}</h1><p class=\"sub\">{} runs "
      "compared</p></header>\n<main>\n",
      escape(title), runs.size());
  for (const RunRecord& run : runs)
    for (const std::string& fault : run.faults)
      content += fmt::format("<p class=\"fault\">{}: {}</p>\n", escape(run.name), escape(fault));
  return page_html(
      title, content + results_section(runs) + curves_section(runs) + options_section(runs) + "</main>\n",
      options);
}

}  // namespace plenum::report
