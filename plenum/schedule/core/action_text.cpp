#include "plenum/schedule/core/action_text.h"

#include <charconv>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/options.h"

namespace plenum::schedule {
namespace {

using Layers = ActionTraits::Layers;

/// Reads a word from the left; every failure names the word.
class WordReader {
 public:
  explicit WordReader(std::string_view word) : word_(word), rest_(word) {}

  std::string_view letters() {
    std::size_t count = 0;
    while (count < rest_.size() && rest_[count] >= 'A' && rest_[count] <= 'Z') ++count;
    const std::string_view code = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return code;
  }

  bool take(char mark) {
    if (!rest_.starts_with(mark)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char mark) {
    base::require(take(mark), "action '{}': '{}' expected before '{}'", word_, mark, rest_);
  }

  template <typename Number>
  Number number(std::string_view what, Number greatest = std::numeric_limits<Number>::max() - 1) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    base::require(error == std::errc() && value <= greatest, "action '{}': {} expected, a number up to {}",
                  word_, what, greatest);
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return static_cast<Number>(value);
  }

  bool is_empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view word_;
  std::string_view rest_;
};

ActionType type_of(std::string_view code, std::string_view word) {
  const std::optional<ActionType> type = action_type_named(code);
  if (!type) {
    std::string known;
    for (const ActionTraits& traits : all_action_traits()) {
      known += known.empty() ? "" : " ";
      known += traits.code;
    }
    base::fail("unknown action '{}'; the codes are {}", word, known);
  }
  return *type;
}

void read_layers(WordReader& reader, const ActionTraits& traits, const StageLayers& layers, Action& action) {
  if (!reader.take('[')) {
    base::require(traits.layers == Layers::Range, "action {} names its layer: [layer] expected", traits.code);
    action.first_layer = layers.first(action.stage);
    action.end_layer = layers.end(action.stage);
    return;
  }
  action.first_layer.value = reader.number<std::uint16_t>("a layer");
  action.end_layer.value = static_cast<std::uint16_t>(action.first_layer.value + 1);
  if (traits.layers == Layers::Range && reader.take(':')) {
    action.end_layer.value = reader.number<std::uint16_t>("a layer");
  }
  reader.expect(']');
}

}  // namespace

std::string action_text(const Action& action, const StageLayers& layers) {
  const ActionTraits& traits = traits_of(action.type);
  std::string text(traits.code);
  const auto out = std::back_inserter(text);
  if (traits.has_stage) fmt::format_to(out, "{}", action.stage.value);
  if (traits.has_micro_batch) fmt::format_to(out, ".{}", action.micro_batch.value);
  const bool is_known_stage = traits.has_stage && action.stage.index() < layers.num_stages();
  const bool is_whole = is_known_stage && traits.layers == Layers::Range &&
                        action.first_layer == layers.first(action.stage) &&
                        action.end_layer == layers.end(action.stage);
  if (traits.layers != Layers::None && !is_whole) {
    if (action.end_layer.value == action.first_layer.value + 1) {
      fmt::format_to(out, "[{}]", action.first_layer.value);
    } else {
      fmt::format_to(out, "[{}:{}]", action.first_layer.value, action.end_layer.value);
    }
  }
  if (traits.has_factor) fmt::format_to(out, "/{}", action.factor);
  if (action.num_pieces != 1) fmt::format_to(out, "#{}/{}", action.piece, action.num_pieces);
  if (action.age != 0) fmt::format_to(out, "~{}", action.age);
  return text;
}

std::string action_words(const Action& action, const StageLayers& layers) {
  const ActionTraits& traits = traits_of(action.type);
  std::string text(traits.name);
  const auto out = std::back_inserter(text);
  if (traits.has_stage && layers.num_stages() > 1) fmt::format_to(out, ", stage {}", action.stage.value);
  if (traits.has_micro_batch) {
    fmt::format_to(out, ", {} {}", counts_rounds(action.type) ? "round" : "micro-batch",
                   action.micro_batch.value);
  }
  if (traits.layers != Layers::None && action.end_layer.value > action.first_layer.value + 1) {
    fmt::format_to(out, ", layers {} to {}", action.first_layer.value, action.end_layer.value - 1);
  } else if (traits.layers != Layers::None) {
    fmt::format_to(out, ", layer {}", action.first_layer.value);
  }
  if (traits.has_factor) fmt::format_to(out, ", factor {}", action.factor);
  if (action.num_pieces != 1) fmt::format_to(out, ", piece {} of {}", action.piece + 1, action.num_pieces);
  if (action.age != 0) fmt::format_to(out, ", of {} steps before", action.age);
  return text;
}

Action parse_action(std::string_view word, const StageLayers& layers) {
  WordReader reader(word);
  Action action{.type = type_of(reader.letters(), word)};
  const ActionTraits& traits = traits_of(action.type);
  if (traits.has_stage) {
    action.stage.value = reader.number<std::uint16_t>("a stage");
    base::require(action.stage.index() < layers.num_stages(), "action '{}': there are {} stages", word,
                  layers.num_stages());
  }
  if (traits.has_micro_batch) {
    reader.expect('.');
    action.micro_batch.value = reader.number<std::uint32_t>("a micro-batch");
  }
  if (traits.layers != Layers::None) read_layers(reader, traits, layers, action);
  if (traits.has_factor) {
    reader.expect('/');
    action.factor = reader.number<std::uint16_t>("a factor");
  }
  if (traits.is_splittable && reader.take('#')) {
    action.piece = reader.number<std::uint8_t>("a piece");
    reader.expect('/');
    action.num_pieces = reader.number<std::uint8_t>("a number of pieces");
  }
  if (traits.may_be_stale && reader.take('~')) action.age = reader.number<std::uint8_t>("an age");
  base::require(reader.is_empty(), "action '{}': '{}' is too much", word, reader.rest());
  return action;
}

}  // namespace plenum::schedule
