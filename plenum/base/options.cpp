#include "plenum/base/options.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "plenum/base/check.h"
#include "plenum/base/units.h"

namespace plenum::base {
namespace {

/// Letters to put in, to leave out or to replace, and neighbours to swap.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substitution});
      const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swap) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::int64_t parse_bounded(const std::string& name, const std::string& text, std::int64_t minimum,
                           std::int64_t maximum) {
  const std::int64_t value = parse_integer(text, name);
  require(value >= minimum, "{} must be at least {}: {}", name, minimum, value);
  require(value <= maximum, "{} must be at most {}: {}", name, maximum, value);
  return value;
}

double parse_bounded_number(const std::string& name, const std::string& text, double minimum,
                            double maximum) {
  const double number = parse_number(text, name);
  require(number >= minimum && number <= maximum, "{} must be between {} and {}: {}", name, minimum, maximum,
          text);
  return number;
}

Option make_option(std::string name, std::string help, std::string placeholder, Option::Kind kind) {
  Option option;
  option.name = std::move(name);
  option.help = std::move(help);
  option.placeholder = std::move(placeholder);
  option.kind = kind;
  return option;
}

}  // namespace

const Option* OptionTable::find(std::string_view name) const {
  const auto found = std::find_if(options_.begin(), options_.end(),
                                  [&](const Option& option) { return option.name == name; });
  return found == options_.end() ? nullptr : &*found;
}

OptionTable OptionTable::only(const std::function<bool(const Option&)>& is_meant) const {
  OptionTable table(name_);
  for (const Option& option : options_) {
    if (is_meant(option)) table.options_.push_back(option);
  }
  return table;
}

const Option* OptionTable::find_former(std::string_view former_name) const {
  const auto found = std::find_if(options_.begin(), options_.end(), [&](const Option& option) {
    return !option.former_name.empty() && option.former_name == former_name;
  });
  return found == options_.end() ? nullptr : &*found;
}

Option& OptionTable::add_option(Option option) {
  check(find(option.name) == nullptr, "option is declared twice: {}.{}", name_, option.name);
  options_.push_back(std::move(option));
  return options_.back();
}

Option& OptionTable::add(std::string name, bool& value, std::string help) {
  Option option = make_option(std::move(name), std::move(help), "", Option::Kind::Flag);
  option.set = [&value, key = option.name](const std::vector<std::string>& given) {
    require(given.front() == "true" || given.front() == "false", "{} must be true or false: '{}'", key,
            given.front());
    value = given.front() == "true";
  };
  option.get = [&value]() -> std::vector<std::string> { return {value ? "true" : "false"}; };
  return add_option(std::move(option));
}

Option& OptionTable::add(std::string name, std::int64_t& value, std::int64_t minimum, std::int64_t maximum,
                         std::string help) {
  Option option = make_option(std::move(name), std::move(help), "N", Option::Kind::Integer);
  option.set = [&value, key = option.name, minimum, maximum](const std::vector<std::string>& given) {
    value = parse_bounded(key, given.front(), minimum, maximum);
  };
  option.get = [&value]() -> std::vector<std::string> { return {fmt::format("{}", value)}; };
  return add_option(std::move(option));
}

Option& OptionTable::add(std::string name, std::optional<std::int64_t>& value, std::int64_t minimum,
                         std::int64_t maximum, std::string help) {
  Option option = make_option(std::move(name), std::move(help), "N", Option::Kind::Integer);
  option.set = [&value, key = option.name, minimum, maximum](const std::vector<std::string>& given) {
    value = parse_bounded(key, given.front(), minimum, maximum);
  };
  option.get = [&value]() -> std::vector<std::string> {
    if (!value) return {};
    return {fmt::format("{}", *value)};
  };
  return add_option(std::move(option));
}

Option& OptionTable::add(std::string name, double& value, double minimum, double maximum, std::string help) {
  Option option = make_option(std::move(name), std::move(help), "X", Option::Kind::Number);
  option.set = [&value, key = option.name, minimum, maximum](const std::vector<std::string>& given) {
    value = parse_bounded_number(key, given.front(), minimum, maximum);
  };
  option.get = [&value]() -> std::vector<std::string> { return {fmt::format("{}", value)}; };
  return add_option(std::move(option));
}

Option& OptionTable::add(std::string name, std::optional<double>& value, double minimum, double maximum,
                         std::string help) {
  Option option = make_option(std::move(name), std::move(help), "X", Option::Kind::Number);
  option.set = [&value, key = option.name, minimum, maximum](const std::vector<std::string>& given) {
    value = parse_bounded_number(key, given.front(), minimum, maximum);
  };
  option.get = [&value]() -> std::vector<std::string> {
    if (!value) return {};
    return {fmt::format("{}", *value)};
  };
  return add_option(std::move(option));
}

Option& OptionTable::add_fraction(std::string name, double& value, std::string help) {
  Option option = make_option(std::move(name), std::move(help), "X|X%", Option::Kind::Number);
  option.set = [&value, key = option.name](const std::vector<std::string>& given) {
    value = parse_fraction(given.front(), key);
  };
  option.get = [&value]() -> std::vector<std::string> { return {fmt::format("{}", value)}; };
  return add_option(std::move(option));
}

Option& OptionTable::add(std::string name, std::string& value, std::string placeholder, std::string help) {
  Option option = make_option(std::move(name), std::move(help), std::move(placeholder), Option::Kind::Text);
  option.set = [&value](const std::vector<std::string>& given) { value = given.front(); };
  option.get = [&value]() -> std::vector<std::string> { return {value}; };
  return add_option(std::move(option));
}

Option& OptionTable::add(std::string name, std::vector<std::string>& values, std::string placeholder,
                         std::string help) {
  Option option =
      make_option(std::move(name), std::move(help), std::move(placeholder), Option::Kind::TextList);
  option.set = [&values](const std::vector<std::string>& given) { values = given; };
  option.get = [&values] { return values; };
  return add_option(std::move(option));
}

std::optional<std::string> nearest_name(std::string_view name, const std::vector<std::string>& known) {
  // Three letters of four must be right: gpu is no slip for cpu.
  constexpr std::size_t kLettersPerSlip = 4;
  std::optional<std::string> best;
  std::size_t best_distance = std::numeric_limits<std::size_t>::max();
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    const bool is_near = distance * kLettersPerSlip <= std::max(name.size(), candidate.size());
    if (is_near && distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string suggest_name(std::string_view name, const std::vector<std::string>& known) {
  const std::optional<std::string> nearest = nearest_name(name, known);
  return nearest ? fmt::format("; did you mean '{}'?", *nearest) : std::string();
}

void fail_choice(const std::string& name, const std::string& value, const std::vector<std::string>& choices) {
  fail("{} must be one of {}: '{}'{}", name, fmt::join(choices, ", "), value, suggest_name(value, choices));
}

}  // namespace plenum::base
