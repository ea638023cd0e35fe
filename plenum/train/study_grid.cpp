#include "plenum/train/study_grid.h"

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plenum/base/check.h"
#include "plenum/base/options.h"
#include "plenum/base/units.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"

namespace plenum::train {
namespace {

using base::Option;
using base::OptionTable;

const Option& option_named(const std::vector<OptionTable>& tables, const std::string& name) {
  std::vector<std::string> known;
  for (const OptionTable& table : tables) {
    if (const Option* const option = table.find(name)) return *option;
    for (const Option& option : table.options()) known.push_back(option.name);
  }
  base::fail("train has no option --{}{}", name, base::suggest_name(name, known));
}

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// An option as it stands on a command line.
struct GivenOption {
  std::string name;
  std::vector<std::string> values;
};

std::vector<GivenOption> given_options(const std::vector<std::string>& arguments) {
  std::vector<GivenOption> given;
  for (const std::string& word : arguments) {
    if (word.starts_with("--")) {
      const std::size_t equals = word.find('=');
      given.push_back(
          {.name = word.substr(2, equals == std::string::npos ? equals : equals - 2), .values = {}});
      if (equals != std::string::npos) given.back().values.push_back(word.substr(equals + 1));
      continue;
    }
    base::require(!given.empty(), "a configuration begins with an option of train, such as --model: {}",
                  word);
    given.back().values.push_back(word);
  }
  return given;
}

void apply_arguments(const std::vector<std::string>& arguments, RunOptions& options) {
  const std::vector<OptionTable> tables = options.tables();
  for (GivenOption& given : given_options(arguments)) {
    const Option& option = option_named(tables, given.name);
    if (option.kind == Option::Kind::Flag && given.values.empty()) given.values = {"true"};
    const bool is_list = option.kind == Option::Kind::TextList;
    base::require(given.values.size() == 1 || (is_list && !given.values.empty()), "--{} takes {}: {}",
                  given.name, is_list ? "at least one value" : "one value", fmt::join(given.values, " "));
    option.set(given.values);
  }
}

/// Lines of a ready grid.
class GridLines {
 public:
  explicit GridLines(const GridRequest& request) : request_(request) {}

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    lines_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  /// The numbers of ranks to go over.
  std::vector<std::int64_t> ranks() const {
    if (!request_.ranks.empty()) return request_.ranks;
    std::vector<std::int64_t> ranks;
    for (std::int64_t n = 1; n <= request_.most_ranks; n *= 2) ranks.push_back(n);
    return ranks;
  }
  /// Those above 1.
  std::vector<std::int64_t> several_ranks() const {
    std::vector<std::int64_t> several = ranks();
    std::erase(several, 1);
    return several;
  }
  bool has_one_rank() const { return ranks().size() > several_ranks().size(); }
  std::vector<std::string> models(std::vector<std::string> own) const {
    return request_.models.empty() ? own : request_.models;
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  const GridRequest& request_;
  std::vector<std::string> lines_;
};

/// Steps of about the same operations, whatever the model.
std::int64_t usual_batch_tokens(const std::string& model) {
  if (model == "bert-tiny") return 16384;
  if (model == "bert-mini") return 8192;
  return model == "bert-small" ? 4096 : 2048;
}

std::string usual_line(const std::string& model, std::string_view layout = "unpadded") {
  return fmt::format("--model {} --layout {} --global-batch {}tok", model, layout, usual_batch_tokens(model));
}

/// Steps of a number of sequences, and so of different numbers of tokens.
std::string varied_line(const std::string& model) {
  constexpr std::int64_t kTokensOfSequence = 256;
  return fmt::format("--model {} --layout unpadded --order sequences --global-batch {}", model,
                     usual_batch_tokens(model) / kTokensOfSequence);
}

constexpr std::array<std::string_view, 3> kLayouts = {"padded", "packed", "unpadded"};

void add_quick(GridLines& lines) {
  const std::vector<std::string> models = lines.models({"bert-tiny", "bert-mini"});
  for (const std::string& model : models) {
    for (const std::int64_t n : lines.ranks()) lines.add("{} --ranks {}", usual_line(model), n);
  }
  const std::string& model = models.back();
  for (const std::string_view layout : {"padded", "packed"}) {
    if (lines.has_one_rank()) lines.add("{}", usual_line(model, layout));
  }
  if (lines.several_ranks().empty()) {
    lines.add("{} --recompute full", usual_line(model));
    return;
  }
  const std::int64_t n = lines.several_ranks().front();
  lines.add("{} --ranks {} --pp {}", usual_line(model), n, n);
  lines.add("{} --ranks {} --tp {}", usual_line(model), n, n);
  lines.add("{} --ranks {} --bucket-bytes 1000000", usual_line(model), n);
  lines.add("{} --ranks {} --shard parameters", usual_line(model), n);
}

/// On one rank.
void add_work_of_full(GridLines& lines, const std::string& model) {
  const std::string line = usual_line(model);
  const std::int64_t batch = usual_batch_tokens(model);
  for (const std::string_view recompute : {"mlp", "full"}) lines.add("{} --recompute {}", line, recompute);
  lines.add("{} --optimizer lamb", line);
  for (const std::int64_t tokens : {1024, 2048, 8192})
    if (tokens <= batch) lines.add("{} --micro-batch-tokens {}", line, tokens);
}

/// What several ranks do beside data parallelism.
void add_layouts_of_ranks(GridLines& lines, const std::string& line, std::int64_t n) {
  for (std::int64_t width = 2; width <= n; width *= 2) {
    lines.add("{} --ranks {} --pp {}", line, n, width);
    lines.add("{} --ranks {} --tp {}", line, n, width);
    if (2 * width <= n) lines.add("{} --ranks {} --pp {} --tp 2", line, n, width);
  }
}

void add_full(GridLines& lines) {
  const std::vector<std::string> models = lines.models({"bert-tiny", "bert-mini", "bert-small"});
  const std::string& middle = models[models.size() / 2];
  for (const std::string& model : models) {
    for (const std::int64_t n : lines.ranks())
      for (const std::string_view layout : kLayouts) lines.add("{} --ranks {}", usual_line(model, layout), n);
    for (const std::int64_t n : lines.several_ranks()) add_layouts_of_ranks(lines, usual_line(model), n);
    for (const std::int64_t n : lines.ranks())
      lines.add("--model {} --layout unpadded --global-batch {}tok --ranks {}", model,
                usual_batch_tokens(model) / 4, n);
    for (const std::int64_t n : lines.ranks()) lines.add("{} --ranks {}", varied_line(model), n);
  }
  if (lines.has_one_rank()) add_work_of_full(lines, middle);
  for (const std::int64_t n : lines.several_ranks()) {
    const std::string line = fmt::format("{} --ranks {}", usual_line(middle), n);
    for (const std::string_view shard : {"optimizer", "gradients", "parameters"})
      lines.add("{} --shard {}", line, shard);
    for (const std::int64_t bytes : {200'000, 1'000'000, 4'000'000, 100'000'000})
      lines.add("{} --bucket-bytes {}", line, bytes);
    for (const std::string_view schedule : {"gpipe", "zb-h1"})
      lines.add("{} --pp {} --schedule {}", line, std::min<std::int64_t>(n, 2), schedule);
    lines.add("{} --pp {} --micro-batches 8", line, std::min<std::int64_t>(n, 2));
    lines.add("{} --optimizer lamb", line);
    lines.add("{} --micro-batch-tokens 1024", line);
    lines.add("{} --recompute full", line);
  }
}

/// Data against pipeline parallelism over slow networks, around as many tokens as the model has parameters
/// for each channel.
void add_links(GridLines& lines) {
  for (const std::string& model : lines.models({"bert-tiny"})) {
    for (const std::int64_t n : lines.several_ranks()) {
      if (n > 2) continue;  // a tiny model has two layers
      for (const std::string_view link :
           {"latency=100us,bandwidth=100MB/s", "latency=100us,bandwidth=25MB/s"}) {
        for (const std::int64_t tokens : {2048, 8192, 32768}) {
          const std::string line = fmt::format(
              "--model {} --layout unpadded --global-batch {}tok --micro-batch-tokens {} --ranks {} "
              "--emulate-link {}",
              model, tokens, tokens / n, n, link);
          lines.add("{}", line);
          lines.add("--model {} --layout unpadded --global-batch {}tok --ranks {} --pp {} --emulate-link {}",
                    model, tokens, n, n, link);
        }
      }
    }
  }
}

std::vector<StudyConfiguration> read_grid(const std::string& path) {
  std::istringstream text(io::read_file(path));
  std::vector<StudyConfiguration> configurations;
  std::size_t number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    const std::vector<std::string> words = words_of(line);
    if (words.empty() || words.front().starts_with("#")) continue;
    configurations.push_back(study_configuration(line, fmt::format("{}:{}", path, number)));
  }
  base::require(!configurations.empty(), "{} has no configuration: one in a line, as options of train", path);
  return configurations;
}

}  // namespace

bool StudyConfiguration::has(std::string_view option) const {
  return std::ranges::any_of(given_options(arguments),
                             [&](const GivenOption& given) { return given.name == option; });
}

std::string StudyConfiguration::name() const {
  std::string text = work() + ", " + plan::strategy_text(options.strategy());
  if (options.run.bucket_bytes)
    text += fmt::format(", buckets of {}",
                        base::format_bytes(static_cast<std::uint64_t>(*options.run.bucket_bytes)));
  return text;
}

std::string StudyConfiguration::work() const {
  // What else was given stands in the arguments.
  static const std::set<std::string> kOfLayoutOverRanks = {
      "model", "layout",       "global-batch", "ranks",         "tp",
      "pp",    "schedule",     "chunks",       "micro-batches", "micro-batch-tokens",
      "shard", "bucket-bytes", "recompute",    "threads",       "stage-layers"};
  const std::vector<GivenOption> given = given_options(arguments);
  std::string text = model_name(options.model);
  for (const std::string_view name : {"layout", "global-batch"}) {
    const auto found = std::ranges::find(given, name, &GivenOption::name);
    if (found != given.end()) text += fmt::format(" {}", fmt::join(found->values, " "));
  }
  for (const GivenOption& option : given) {
    if (kOfLayoutOverRanks.contains(option.name)) continue;
    text += fmt::format(", {} {}", option.name, fmt::join(option.values, " "));
  }
  return text;
}

StudyConfiguration study_configuration(std::string_view text, std::string place) {
  StudyConfiguration configuration{.arguments = words_of(text), .options = {}, .place = std::move(place)};
  try {
    apply_arguments(configuration.arguments, configuration.options);
  } catch (const base::UserError& error) {
    if (configuration.place.empty()) throw;
    base::fail("{}: {}", configuration.place, error.what());
  }
  return configuration;
}

void add_option(StudyConfiguration& configuration, const std::string& name, const std::string& value) {
  const std::vector<std::string> added = {"--" + name, value};
  apply_arguments(added, configuration.options);
  configuration.arguments_of_study.insert(configuration.arguments_of_study.end(), added.begin(), added.end());
}

std::vector<StudyConfiguration> study_grid(const GridRequest& request) {
  GridLines lines(request);
  if (request.name == "quick") {
    add_quick(lines);
  } else if (request.name == "full") {
    add_full(lines);
  } else if (request.name == "links") {
    add_links(lines);
  } else {
    base::require(io::path_exists(request.name),
                  "--grid is quick, full, links or a file with options of train in every line: {}",
                  request.name);
    return read_grid(request.name);
  }
  std::vector<StudyConfiguration> configurations;
  std::set<std::string> seen;
  for (const std::string& line : lines.take())
    if (seen.insert(line).second) configurations.push_back(study_configuration(line));
  return configurations;
}

}  // namespace plenum::train
