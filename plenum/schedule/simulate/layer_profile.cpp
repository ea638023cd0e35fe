#include "plenum/schedule/simulate/layer_profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/base/units.h"

namespace plenum::schedule {
namespace {

constexpr double kSecondsPerMillisecond = 1e-3;
constexpr double kBytesPerMebibyte = 1024.0 * 1024.0;
constexpr double kGreatestCost = 1e15;     ///< seconds or bytes: sums of many stay finite
constexpr std::size_t kLongestField = 40;  ///< longer than any number that is meant

struct Column {
  std::string_view name;
  double LayerCosts::*field;
  double unit;
};

constexpr std::string_view kBatchColumn = "bs";
constexpr std::array kColumns = {
    Column{"time_f", &LayerCosts::forward_seconds, kSecondsPerMillisecond},
    Column{"time_b", &LayerCosts::backward_seconds, kSecondsPerMillisecond},
    Column{"time_kron", &LayerCosts::curvature_seconds, kSecondsPerMillisecond},
    Column{"time_inv", &LayerCosts::inversion_seconds, kSecondsPerMillisecond},
    Column{"time_prec", &LayerCosts::precondition_seconds, kSecondsPerMillisecond},
    Column{"mem_param", &LayerCosts::parameter_bytes, kBytesPerMebibyte},
    Column{"mem_act", &LayerCosts::activation_bytes, kBytesPerMebibyte},
    Column{"mem_peak_err", &LayerCosts::peak_error_bytes, kBytesPerMebibyte},
    Column{"mem_save_err", &LayerCosts::saved_error_bytes, kBytesPerMebibyte},
    Column{"mem_kron", &LayerCosts::factor_bytes, kBytesPerMebibyte},
};

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

/// Short enough for a message of one line.
std::string_view shortened(std::string_view text) {
  return text.substr(0, kLongestField);
}

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t comma = line.find(',');
    fields.push_back(trim(line.substr(0, comma)));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

class ProfileReader {
 public:
  ProfileReader(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  LayerProfile read() {
    std::optional<std::string_view> header = next_line();
    if (!header) base::fail("{}: the profile is empty", source_);
    read_header(*header);
    std::vector<LayerProfile::Row> rows;
    while (const std::optional<std::string_view> line = next_line()) {
      const LayerProfile::Row row = read_row(split(*line));
      const bool is_known = std::any_of(
          rows.begin(), rows.end(), [&](const LayerProfile::Row& other) { return other.batch == row.batch; });
      if (is_known) fail("batch size {} was given before", row.batch);
      rows.push_back(row);
    }
    if (rows.empty()) fail("the profile has no rows below its header");
    return {std::move(rows), std::string(source_)};
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    base::fail("{}:{}: {}", source_, line_number_, fmt::format(format, std::forward<Args>(args)...));
  }

  /// Empty lines are skipped.
  std::optional<std::string_view> next_line() {
    while (!text_.empty()) {
      const std::size_t end = text_.find('\n');
      const std::string_view line = trim(text_.substr(0, end));
      text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
      ++line_number_;
      if (!line.empty()) return line;
    }
    return std::nullopt;
  }

  void read_header(std::string_view line) {
    const std::vector<std::string_view> names = split(line);
    num_fields_ = names.size();
    batch_index_ = find_column(names, kBatchColumn);
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
      column_indices_[i] = find_column(names, kColumns[i].name);
    }
  }

  std::size_t find_column(const std::vector<std::string_view>& names, std::string_view name) const {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) fail("the header lacks the column {}", name);
    if (std::find(found + 1, names.end(), name) != names.end()) fail("the header names {} twice", name);
    return static_cast<std::size_t>(found - names.begin());
  }

  LayerProfile::Row read_row(const std::vector<std::string_view>& fields) const {
    if (fields.size() != num_fields_) {
      fail("the line has {} fields, but the header names {}", fields.size(), num_fields_);
    }
    LayerProfile::Row row;
    const double batch = read_number(fields[batch_index_], kBatchColumn);
    constexpr double kGreatestBatch = 1 << 30;
    if (batch < 1 || batch > kGreatestBatch || batch != std::floor(batch)) {
      fail("{} must be a whole number greater than zero: {}", kBatchColumn, shortened(fields[batch_index_]));
    }
    row.batch = static_cast<std::int64_t>(batch);
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
      const std::string_view field = fields[column_indices_[i]];
      const double cost = read_number(field, kColumns[i].name) * kColumns[i].unit;
      if (!(cost <= kGreatestCost)) fail("{} is too large: {}", kColumns[i].name, shortened(field));
      row.costs.*kColumns[i].field = cost;
    }
    return row;
  }

  double read_number(std::string_view field, std::string_view column) const {
    if (field.size() > kLongestField) fail("{} must be a number: '{}...'", column, shortened(field));
    const double value = base::parse_number(field, fmt::format("{}:{}: {}", source_, line_number_, column));
    if (value < 0) fail("{} must not be negative: {}", column, shortened(field));
    return value;
  }

  std::string_view text_;
  std::string_view source_;
  std::size_t line_number_ = 0;
  std::size_t num_fields_ = 0;
  std::size_t batch_index_ = 0;
  std::array<std::size_t, kColumns.size()> column_indices_ = {};
};

}  // namespace

LayerProfile::LayerProfile(std::vector<Row> rows, std::string source)
    : rows_(std::move(rows)), source_(std::move(source)) {
  base::check(!rows_.empty(), "a profile needs a row");
  std::sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) { return a.batch < b.batch; });
}

LayerCosts LayerProfile::row(std::int64_t batch) const {
  const auto above = std::lower_bound(rows_.begin(), rows_.end(), batch,
                                      [](const Row& row, std::int64_t value) { return row.batch < value; });
  if (above != rows_.end() && above->batch == batch) return above->costs;
  if (above == rows_.begin() || above == rows_.end()) {
    std::string known;
    for (const Row& row : rows_) known += fmt::format("{}{}", known.empty() ? "" : ", ", row.batch);
    base::fail("{}: batch size {} lies outside of what was measured: {}", source_, batch, known);
  }
  const Row& below = *(above - 1);
  const double weight =
      static_cast<double>(batch - below.batch) / static_cast<double>(above->batch - below.batch);
  LayerCosts costs;
  for (const Column& column : kColumns) {
    costs.*column.field = std::lerp(below.costs.*column.field, above->costs.*column.field, weight);
  }
  return costs;
}

LayerProfile parse_layer_profile(std::string_view text, std::string_view source) {
  return ProfileReader(text, source).read();
}

}  // namespace plenum::schedule
