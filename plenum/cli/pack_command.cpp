#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/cli/command.h"
#include "plenum/cli/pack_report.h"
#include "plenum/data/batches/histogram_file.h"
#include "plenum/data/batches/packing_plan_file.h"
#include "plenum/data/corpus/dataset_description.h"
#include "plenum/io/file.h"
#include "plenum/packing/packers.h"

namespace plenum::cli {
namespace {

using packing::HistogramText;
using packing::Packer;
using packing::PackingProblem;
using packing::PackingResult;

struct PackCommandOptions {
  std::string histogram;
  std::string lengths;
  std::string data;
  std::optional<std::int64_t> max_length;
  std::optional<std::int64_t> depth;
  const Packer* packer = &packing::all_packers().front();  ///< null: all of them
  packing::BoundEffort bound = packing::BoundEffort::LinearProgram;
  double time_limit = 30;
  std::int64_t open_packs = 1024;
  std::int64_t seed = 0;
  bool json = false;
  std::string output;
  std::string verify;
};

/// The sequences, where they come from, and the capacity that goes with them unless one is given.
struct Input {
  packing::LengthHistogram histogram;
  std::string source;
  std::int64_t default_capacity = 0;
};

class PackCommand final : public Command {
 public:
  std::string name() const override { return "pack"; }
  std::string summary() const override { return "Pack sequences into fixed lengths, beside a proven bound"; }
  std::vector<base::OptionTable> tables() override;
  int run() override;

 private:
  Input read_input() const;
  packing::PackOptions pack_options() const;
  PackingProblem make_problem(const Input& input) const;
  std::vector<PackingResult> pack_all(const PackingProblem& problem) const;
  int verify(const Input& input) const;
  void print(const PackingProblem& problem, const std::string& source,
             const std::vector<PackReportRow>& rows) const;

  PackCommandOptions options_;
};

std::vector<base::OptionTable> PackCommand::tables() {
  base::OptionTable table("pack");
  table.add("histogram", options_.histogram, "FILE",
            "Text file: line i is the number of sequences of length i, or each line a length and a number");
  table.add("lengths", options_.lengths, "FILE", "Text file: each line is the length of a sequence");
  table.add("data", options_.data, "DIR", "A prepared dataset");
  table.add("max-length", options_.max_length, 1, packing::kGreatestCapacity,
            "Tokens that a pack holds; default: the dataset's, or the longest length");
  table.add("depth", options_.depth, 1, packing::kGreatestCapacity,
            "Sequences that a pack holds at most; default: unlimited");
  std::vector<std::pair<std::string, const Packer*>> packers;
  std::string help = "How to pack";
  for (const Packer& packer : packing::all_packers()) {
    packers.emplace_back(packer.name, &packer);
    help += fmt::format("{}{}: {}", packers.size() == 1 ? " (" : "; ", packer.name, packer.summary);
  }
  packers.emplace_back("all", nullptr);
  table.add_choice("algorithm", options_.packer, packers, help + ")");
  table.add_choice("bound", options_.bound,
                   {{"lp", packing::BoundEffort::LinearProgram}, {"quick", packing::BoundEffort::Quick}},
                   "How to prove a lower bound; quick leaves out the linear program");
  table.add("time-limit", options_.time_limit, 0, 1e9,
            "Seconds after which optimal stops looking for fewer packs, if it has not reached the bound");
  table.add("open-packs", options_.open_packs, 1, 1 << 24, "streaming: packs that may be open at a time");
  table.add("seed", options_.seed, 0, std::numeric_limits<std::int64_t>::max(),
            "streaming: names the order in which sequences arrive");
  table.add("json", options_.json, "Print the result as JSON");
  table.add("output", options_.output, "FILE", "Write the plan (with all: the one of fewest packs) as JSON");
  table.add("verify", options_.verify, "FILE",
            "Check that this plan packs every sequence once, instead of packing");
  return {table};
}

Input PackCommand::read_input() const {
  const int num_given = !options_.histogram.empty() + !options_.lengths.empty() + !options_.data.empty();
  base::require(num_given == 1, "give exactly one of --histogram FILE, --lengths FILE and --data DIR");
  if (!options_.data.empty()) {
    const data::DatasetDescription dataset = data::read_dataset_description(options_.data);
    return {dataset[data::Split::Train].histogram, options_.data, dataset.max_length};
  }
  const bool is_lengths = !options_.lengths.empty();
  const std::string& path = is_lengths ? options_.lengths : options_.histogram;
  Input input{data::read_histogram_file(
                  path, is_lengths ? HistogramText::Form::Lengths : HistogramText::Form::Histogram),
              path, 0};
  input.default_capacity = input.histogram.longest();
  return input;
}

PackingProblem PackCommand::make_problem(const Input& input) const {
  PackingProblem problem{.histogram = input.histogram,
                         .capacity = options_.max_length.value_or(input.default_capacity),
                         .depth = 0};
  // A packer that knows a greatest depth gets it where none is asked for.
  const std::int64_t greatest = options_.packer == nullptr ? 0 : options_.packer->greatest_depth;
  const std::int64_t default_depth = greatest > 0 ? greatest : problem.capacity;
  problem.depth = std::min(options_.depth.value_or(default_depth), problem.capacity);
  const std::int64_t longest = problem.histogram.longest();
  base::require(longest <= problem.capacity, "{}: there are sequences of length {}, over --max-length {}",
                input.source, longest, problem.capacity);
  packing::check_problem(problem);
  return problem;
}

packing::PackOptions PackCommand::pack_options() const {
  return {.time_limit_seconds = options_.time_limit,
          .bound = options_.bound,
          .max_open_packs = options_.open_packs,
          .seed = static_cast<std::uint64_t>(options_.seed)};
}

/// Runs the packer asked for, or each that applies, saying of the others why not. What the first has proven
/// holds for all of its depth; a packer that makes shallower packs is compared with what is possible with
/// them.
std::vector<PackingResult> PackCommand::pack_all(const PackingProblem& problem) const {
  if (options_.packer != nullptr) return {packing::pack(problem, *options_.packer, pack_options())};
  std::vector<PackingResult> results;
  for (const Packer& packer : packing::all_packers()) {
    PackingProblem part = problem;
    if (packer.greatest_depth > 0) part.depth = std::min(part.depth, packer.greatest_depth);
    if (const auto reason = packing::reason_against(part, packer)) {
      fmt::print(stderr, "plenum: {} is left out: {}\n", packer.name, *reason);
      continue;
    }
    packing::PackOptions options = pack_options();
    if (part.depth == problem.depth) options.bound = packing::BoundEffort::Quick;
    results.push_back(packing::pack(part, packer, options));
    packing::LowerBound& bound = results.back().bound;
    if (bound.packs < results.front().bound.packs) bound = results.front().bound;
  }
  return results;
}

void PackCommand::print(const PackingProblem& problem, const std::string& source,
                        const std::vector<PackReportRow>& rows) const {
  if (options_.json) {
    std::vector<std::string> objects;
    for (const PackReportRow& row : rows) objects.push_back(pack_report_json(problem, row));
    const bool is_list = options_.packer == nullptr && options_.verify.empty();
    fmt::print("{}\n", is_list ? fmt::format("[{}]", fmt::join(objects, ",\n ")) : objects.front());
    return;
  }
  fmt::print("{}{}", describe_problem(problem, source), pack_report_table(problem, rows));
}

int PackCommand::verify(const Input& input) const {
  base::require(options_.output.empty(), "--verify writes nothing: leave out --output");
  const packing::PackingPlan plan = data::read_packing_plan(options_.verify);
  const PackingProblem problem{.histogram = input.histogram,
                               .capacity = options_.max_length.value_or(plan.capacity),
                               .depth = options_.depth.value_or(plan.depth)};
  const std::optional<std::string> fault = packing::find_fault(plan, problem);
  base::require(!fault, "{} does not pack {}: {}", options_.verify, input.source, fault.value_or(""));
  const packing::LowerBound bound = packing::prove_bound(problem, plan.num_packs(), pack_options());
  if (options_.json) {
    print(problem, input.source, {{.algorithm = "verified", .plan = &plan, .bound = bound, .seconds = 0}});
    return 0;
  }
  fmt::print(
      "{} packs each of the {} sequences of {} once, in {} packs; no plan has fewer than {} (proof: {})\n",
      options_.verify, base::format_count(problem.histogram.num_sequences()), input.source,
      base::format_count(plan.num_packs()), base::format_count(bound.packs), bound.proof);
  return 0;
}

int PackCommand::run() {
  const Input input = read_input();
  if (!options_.verify.empty()) return verify(input);
  const PackingProblem problem = make_problem(input);
  // Opened first: what cannot be written is known before the work, not after it.
  std::optional<io::AtomicFile> output;
  if (!options_.output.empty()) {
    std::error_code ignored;
    base::require(!std::filesystem::equivalent(options_.output, input.source, ignored),
                  "--output {} is the input itself; choose another name", options_.output);
    output.emplace(options_.output);
  }
  const std::vector<PackingResult> results = pack_all(problem);
  const auto fewest = std::min_element(
      results.begin(), results.end(),
      [](const PackingResult& a, const PackingResult& b) { return a.plan.num_packs() < b.plan.num_packs(); });
  if (output) {
    output->write(data::print_packing_plan(fewest->plan));
    output->commit();
  }

  std::vector<PackReportRow> rows;
  for (const PackingResult& result : results) {
    rows.push_back({.algorithm = std::string(result.packer->name),
                    .plan = &result.plan,
                    .bound = result.bound,
                    .seconds = result.seconds});
  }
  print(problem, input.source, rows);
  if (output && !options_.json) {
    fmt::print("{} patterns of {} written to {}\n", fewest->plan.patterns.size(), fewest->packer->name,
               options_.output);
  }
  return 0;
}

}  // namespace

std::unique_ptr<Command> make_pack_command() {
  return std::make_unique<PackCommand>();
}

}  // namespace plenum::cli
