#include "plenum/schedule/text/schedule_fields.h"

#include <array>
#include <charconv>
#include <limits>

#include "plenum/base/check.h"

namespace plenum::schedule {
namespace {

using Words = std::span<const std::string_view>;
using Kind = ScheduleField::Kind;

template <typename Number>
constexpr std::uint64_t greatest() {
  return std::numeric_limits<Number>::max() - 1;
}

template <typename Number>
std::vector<std::string> words_of(const std::vector<Number>& numbers) {
  std::vector<std::string> words;
  words.reserve(numbers.size());
  for (const Number number : numbers) words.push_back(std::to_string(number));
  return words;
}

std::vector<std::string> word_unless_zero(std::uint64_t number) {
  if (number == 0) return {};
  return {std::to_string(number)};
}

template <typename Number>
void read_numbers(Words words, std::string_view what, std::uint64_t least, std::vector<Number>& numbers) {
  numbers.clear();
  numbers.reserve(words.size());
  for (const std::string_view word : words) {
    numbers.push_back(static_cast<Number>(parse_count(word, what, least, greatest<Number>())));
  }
}

template <typename Enum, std::size_t size>
Enum choose(std::string_view word, std::string_view what,
            const std::array<std::pair<std::string_view, Enum>, size>& choices) {
  std::string known;
  for (const auto& [name, value] : choices) {
    if (name == word) return value;
    known += known.empty() ? "" : ", ";
    known += name;
  }
  base::fail("{} must be one of {}: '{}'", what, known, word);
}

template <typename Enum, std::size_t size>
std::vector<std::string> name_unless_first(
    Enum value, const std::array<std::pair<std::string_view, Enum>, size>& choices) {
  for (std::size_t i = 1; i < size; ++i) {
    if (choices[i].second == value) return {std::string(choices[i].first)};
  }
  return {};
}

// The first of each is the default.
constexpr std::array<std::pair<std::string_view, Recomputation>, 3> kRecomputations = {
    {{"none", Recomputation::None}, {"mlp", Recomputation::Mlp}, {"full", Recomputation::Full}}};
constexpr std::array<std::pair<std::string_view, Sharding>, 4> kShardings = {
    {{"none", Sharding::None},
     {"optimizer", Sharding::Optimizer},
     {"gradients", Sharding::Gradients},
     {"parameters", Sharding::Parameters}}};
constexpr std::array<std::pair<std::string_view, Preconditioner>, 4> kPreconditioners = {
    {{"none", Preconditioner::None},
     {"kfac", Preconditioner::Kfac},
     {"shampoo", Preconditioner::Shampoo},
     {"muon", Preconditioner::Muon}}};

constexpr std::array<std::pair<std::string_view, bool>, 2> kCurvatures = {
    {{"all", false}, {"partial", true}}};

constexpr std::array<ScheduleField, 13> kFields = {{
    {"name", Kind::Text,
     [](const Schedule& schedule) {
       return schedule.name.empty() ? std::vector<std::string>{} : std::vector<std::string>{schedule.name};
     },
     [](Schedule& schedule, Words words) { schedule.name = words.front(); }},
    {"layers", Kind::Numbers,
     [](const Schedule& schedule) { return words_of(schedule.problem.stage_layers); },
     [](Schedule& schedule, Words words) {
       read_numbers(words, "a stage's number of layers", 1, schedule.problem.stage_layers);
     }},
    {"micro-batches", Kind::Number,
     [](const Schedule& schedule) { return word_unless_zero(schedule.problem.num_micro_batches); },
     [](Schedule& schedule, Words words) {
       schedule.problem.num_micro_batches = static_cast<std::uint32_t>(
           parse_count(words.front(), "the number of micro-batches", 1, greatest<std::uint32_t>()));
     }},
    {"sizes", Kind::Numbers,
     [](const Schedule& schedule) { return words_of(schedule.problem.micro_batch_sizes); },
     [](Schedule& schedule, Words words) {
       read_numbers(words, "a micro-batch's size", 0, schedule.problem.micro_batch_sizes);
     }},
    {"recompute", Kind::Choice,
     [](const Schedule& schedule) {
       return name_unless_first(schedule.problem.recomputation, kRecomputations);
     },
     [](Schedule& schedule, Words words) {
       schedule.problem.recomputation = choose(words.front(), "recompute", kRecomputations);
     }},
    {"sharding", Kind::Choice,
     [](const Schedule& schedule) { return name_unless_first(schedule.problem.sharding, kShardings); },
     [](Schedule& schedule, Words words) {
       schedule.problem.sharding = choose(words.front(), "sharding", kShardings);
     }},
    {"preconditioner", Kind::Choice,
     [](const Schedule& schedule) {
       return name_unless_first(schedule.problem.preconditioner, kPreconditioners);
     },
     [](Schedule& schedule, Words words) {
       schedule.problem.preconditioner = choose(words.front(), "preconditioner", kPreconditioners);
     }},
    {"factors", Kind::Number,
     [](const Schedule& schedule) { return word_unless_zero(schedule.problem.num_factors); },
     [](Schedule& schedule, Words words) {
       schedule.problem.num_factors = static_cast<std::uint16_t>(
           parse_count(words.front(), "the number of factors", 0, greatest<std::uint16_t>()));
     }},
    {"curvature", Kind::Choice,
     [](const Schedule& schedule) {
       return name_unless_first(schedule.problem.has_partial_curvature, kCurvatures);
     },
     [](Schedule& schedule, Words words) {
       schedule.problem.has_partial_curvature = choose(words.front(), "curvature", kCurvatures);
     }},
    {"staleness", Kind::Number,
     [](const Schedule& schedule) { return word_unless_zero(schedule.problem.staleness); },
     [](Schedule& schedule, Words words) {
       schedule.problem.staleness =
           static_cast<std::uint8_t>(parse_count(words.front(), "the staleness", 0, kMaxAge));
     }},
    {"tied", Kind::Flag,
     [](const Schedule& schedule) {
       return schedule.problem.has_tied_parameters ? std::vector<std::string>{""}
                                                   : std::vector<std::string>{};
     },
     [](Schedule& schedule, Words) { schedule.problem.has_tied_parameters = true; }},
    {"tied-halves", Kind::Flag,
     [](const Schedule& schedule) {
       return schedule.problem.has_tied_halves ? std::vector<std::string>{""} : std::vector<std::string>{};
     },
     [](Schedule& schedule, Words) { schedule.problem.has_tied_halves = true; }},
    {"tensor-norms", Kind::Flag,
     [](const Schedule& schedule) {
       return schedule.problem.has_tensor_norms ? std::vector<std::string>{""} : std::vector<std::string>{};
     },
     [](Schedule& schedule, Words) { schedule.problem.has_tensor_norms = true; }},
}};

}  // namespace

std::span<const ScheduleField> all_schedule_fields() {
  return kFields;
}

const ScheduleField* schedule_field_named(std::string_view name) {
  for (const ScheduleField& field : kFields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

std::uint64_t parse_count(std::string_view word, std::string_view what, std::uint64_t least,
                          std::uint64_t greatest) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool is_number = error == std::errc() && end == word.data() + word.size();
  base::require(is_number && value >= least && value <= greatest,
                "{} must be a whole number from {} to {}: '{}'", what, least, greatest, word);
  return value;
}

}  // namespace plenum::schedule
