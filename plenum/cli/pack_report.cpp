#include "plenum/cli/pack_report.h"

#include <functional>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plenum/base/units.h"
#include "plenum/cli/terminal_plot.h"
#include "plenum/packing/packers.h"

namespace plenum::cli {
namespace {

constexpr int kPlotColumns = 80;
constexpr int kPlotRows = 8;

std::string depth_name(std::int64_t depth, std::int64_t capacity) {
  return depth >= capacity ? "unlimited" : fmt::format("{}", depth);
}

/// 12 packs over a bound of 8,135,727 -> "12 (0.0001%)"; none -> "none".
std::string gap_text(std::uint64_t packs, std::uint64_t bound) {
  if (packs == bound) return "none";
  const double share = 100.0 * static_cast<double>(packs - bound) / static_cast<double>(bound);
  return fmt::format("{} ({:.{}f}%)", base::format_count(packs - bound), share, share < 0.01 ? 5 : 2);
}

/// A line for every depth, the greatest first.
std::string describe_bounds(const packing::PackingProblem& problem, const std::vector<PackReportRow>& rows) {
  std::map<std::int64_t, packing::LowerBound, std::greater<>> best_of_depth;
  for (const PackReportRow& row : rows) {
    packing::LowerBound& best = best_of_depth[row.plan->depth];
    if (row.bound.packs > best.packs) best = row.bound;
  }
  std::string text;
  for (const auto& [depth, bound] : best_of_depth) {
    text +=
        fmt::format("capacity {}, depth {}: no plan has fewer than {} packs (proof: {})\n", problem.capacity,
                    depth_name(depth, problem.capacity), base::format_count(bound.packs), bound.proof);
  }
  return text;
}

}  // namespace

std::string pack_report_json(const packing::PackingProblem& problem, const PackReportRow& row) {
  const std::uint64_t packs = row.plan->num_packs();
  nlohmann::ordered_json object;
  object["algorithm"] = row.algorithm;
  object["sequences"] = problem.histogram.num_sequences();
  object["tokens"] = problem.histogram.num_tokens();
  object["capacity"] = problem.capacity;
  object["depth"] = row.plan->depth;
  object["packs"] = packs;
  object["efficiency"] = packing::packing_efficiency(*row.plan, problem.histogram.num_tokens());
  object["lower_bound"] = row.bound.packs;
  object["gap_packs"] = packs - row.bound.packs;
  object["seconds"] = row.seconds;
  return object.dump();
}

std::string describe_problem(const packing::PackingProblem& problem, const std::string& source) {
  const std::uint64_t sequences = problem.histogram.num_sequences();
  const std::uint64_t tokens = problem.histogram.num_tokens();
  const double mean = static_cast<double>(tokens) / static_cast<double>(sequences);
  std::string text = fmt::format("{}\n{} sequences, {} tokens, mean length {:.1f}, longest {}\n", source,
                                 base::format_count(sequences), base::format_count(tokens), mean,
                                 problem.histogram.longest());
  text += fmt::format("padded to {}, {:.1f}% of all positions would be padding\n\n", problem.capacity,
                      100 * (1 - mean / static_cast<double>(problem.capacity)));
  text += "sequences of each length (height grows with the square root)\n";
  return text + draw_histogram(problem.histogram, kPlotColumns, kPlotRows) + "\n";
}

std::string pack_report_table(const packing::PackingProblem& problem,
                              const std::vector<PackReportRow>& rows) {
  std::string text = describe_bounds(problem, rows) + "\n";
  text += fmt::format("{:<17}{:>13}{:>10}{:>20}{:>10}{:>10}\n", "algorithm", "packs", "filled",
                      "over the bound", "speed-up", "time");
  for (const PackReportRow& row : rows) {
    const std::uint64_t packs = row.plan->num_packs();
    const std::string name = row.plan->depth == problem.depth
                                 ? row.algorithm
                                 : fmt::format("{}, depth {}", row.algorithm, row.plan->depth);
    const double speed_up =
        static_cast<double>(problem.histogram.num_sequences()) / static_cast<double>(packs);
    text += fmt::format("{:<17}{:>13}{:>9.3f}%{:>20}{:>9.4f}x{:>10}\n", name, base::format_count(packs),
                        100 * packing::packing_efficiency(*row.plan, problem.histogram.num_tokens()),
                        gap_text(packs, row.bound.packs), speed_up, base::format_seconds(row.seconds));
  }
  return text + "\nspeed-up is over one padded sequence per pack\n";
}

}  // namespace plenum::cli
