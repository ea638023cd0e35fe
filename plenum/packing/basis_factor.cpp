#include "plenum/packing/basis_factor.h"

#include <algorithm>
#include <cmath>

namespace plenum::packing {

namespace {

constexpr double kNegligible = 1e-13;
/// A pivot is at least this share of the largest entry of its column.
constexpr double kStability = 0.1;

/// The part of a matrix that is not yet eliminated: values by row, and for each column the rows that hold it.
class ActiveMatrix {
 public:
  explicit ActiveMatrix(const SparseColumns& columns)
      : rows_(columns.size()),
        columns_(columns.size()),
        done_(columns.size()),
        fill_(columns.size(), -1),
        buckets_(columns.size() + 1) {
    for (std::size_t column = 0; column < columns.size(); ++column) {
      for (const SparseEntry& entry : columns[column]) {
        rows_[static_cast<std::size_t>(entry.index)].push_back(
            {static_cast<std::int32_t>(column), entry.value});
        columns_[column].push_back(entry.index);
      }
      file(static_cast<std::int32_t>(column));
    }
  }

  struct Choice {
    std::int32_t row = -1;
    std::int32_t column = -1;
    double value = 0;
  };

  /// The shortest row that is stable in the shortest column; row -1 if every column left is numerically
  /// empty.
  Choice choose_pivot() {
    for (std::size_t count = 1; count < buckets_.size(); ++count) {
      std::vector<std::int32_t>& bucket = buckets_[count];
      while (!bucket.empty()) {
        const std::int32_t column = bucket.back();
        bucket.pop_back();
        if (done_[static_cast<std::size_t>(column)] ||
            columns_[static_cast<std::size_t>(column)].size() != count) {
          continue;  // filed again since
        }
        const Choice choice = choose_row(column);
        if (choice.row >= 0) return choice;
      }
    }
    return {};
  }

  /// Eliminates the pivot's column from the other rows. Appends the multipliers to `lower` and the rest of
  /// the pivot's row to `upper`.
  void eliminate(const Choice& pivot, SparseColumns& lower, SparseColumns& upper) {
    done_[static_cast<std::size_t>(pivot.column)] = 1;
    std::vector<SparseEntry>& pivot_row = rows_[static_cast<std::size_t>(pivot.row)];
    std::erase_if(pivot_row, [&](const SparseEntry& entry) { return entry.index == pivot.column; });
    multipliers_.clear();
    for (const std::int32_t row : columns_[static_cast<std::size_t>(pivot.column)]) {
      if (row == pivot.row) continue;
      const double multiplier = take(row, pivot.column) / pivot.value;
      multipliers_.push_back({row, multiplier});
      subtract(row, multiplier, pivot_row);
    }
    for (const SparseEntry& entry : pivot_row) {
      std::erase(columns_[static_cast<std::size_t>(entry.index)], pivot.row);
      file(entry.index);
    }
    lower.append(multipliers_);
    upper.append(pivot_row);
  }

 private:
  void file(std::int32_t column) {
    buckets_[columns_[static_cast<std::size_t>(column)].size()].push_back(column);
  }

  Choice choose_row(std::int32_t column) const {
    const std::vector<std::int32_t>& candidates = columns_[static_cast<std::size_t>(column)];
    double largest = kNegligible;
    for (const std::int32_t row : candidates) largest = std::max(largest, std::abs(value_at(row, column)));
    Choice choice;
    std::size_t shortest = rows_.size() + 1;
    for (const std::int32_t row : candidates) {
      const double value = value_at(row, column);
      const std::size_t length = rows_[static_cast<std::size_t>(row)].size();
      if (std::abs(value) >= kStability * largest && length < shortest) {
        shortest = length;
        choice = {row, column, value};
      }
    }
    return choice;
  }

  double value_at(std::int32_t row, std::int32_t column) const {
    const std::vector<SparseEntry>& entries = rows_[static_cast<std::size_t>(row)];
    return std::find_if(entries.begin(), entries.end(),
                        [&](const SparseEntry& entry) { return entry.index == column; })
        ->value;
  }

  /// Removes an entry from its row and returns it.
  double take(std::int32_t row, std::int32_t column) {
    std::vector<SparseEntry>& entries = rows_[static_cast<std::size_t>(row)];
    const auto entry =
        std::find_if(entries.begin(), entries.end(), [&](const SparseEntry& e) { return e.index == column; });
    const double value = entry->value;
    *entry = entries.back();
    entries.pop_back();
    return value;
  }

  /// row -= multiplier * other.
  void subtract(std::int32_t row, double multiplier, const std::vector<SparseEntry>& other) {
    std::vector<SparseEntry>& entries = rows_[static_cast<std::size_t>(row)];
    for (std::size_t i = 0; i < entries.size(); ++i) {
      fill_[static_cast<std::size_t>(entries[i].index)] = static_cast<std::int32_t>(i);
    }
    const std::size_t old_size = entries.size();
    for (const SparseEntry& entry : other) {
      const std::int32_t place = fill_[static_cast<std::size_t>(entry.index)];
      if (place >= 0) {
        entries[static_cast<std::size_t>(place)].value -= multiplier * entry.value;
      } else {
        entries.push_back({entry.index, -multiplier * entry.value});
        columns_[static_cast<std::size_t>(entry.index)].push_back(row);
      }
    }
    for (std::size_t i = 0; i < old_size; ++i) fill_[static_cast<std::size_t>(entries[i].index)] = -1;
    std::erase_if(entries, [&](const SparseEntry& entry) {
      if (std::abs(entry.value) > kNegligible) return false;
      std::erase(columns_[static_cast<std::size_t>(entry.index)], row);
      return true;
    });
  }

  std::vector<std::vector<SparseEntry>> rows_;
  std::vector<std::vector<std::int32_t>> columns_;
  std::vector<char> done_;
  std::vector<std::int32_t> fill_;                  ///< where a row holds a column, while it is being changed
  std::vector<std::vector<std::int32_t>> buckets_;  ///< columns by number of rows, some entries out of date
  std::vector<SparseEntry> multipliers_;
};

}  // namespace

bool BasisFactor::factor(const SparseColumns& columns) {
  const std::size_t size = columns.size();
  pivots_.clear();
  lower_.clear();
  upper_rows_.clear();
  upper_columns_.clear();
  exchanges_.clear();
  exchange_directions_.clear();
  work_.assign(size, 0);

  ActiveMatrix active(columns);
  for (std::size_t step = 0; step < size; ++step) {
    const ActiveMatrix::Choice pivot = active.choose_pivot();
    if (pivot.row < 0) return false;
    active.eliminate(pivot, lower_, upper_rows_);
    pivots_.push_back({pivot.row, pivot.column, pivot.value});
  }

  std::vector<std::vector<SparseEntry>> by_position(size);
  for (std::size_t step = 0; step < size; ++step) {
    for (const SparseEntry& entry : upper_rows_[step]) {
      by_position[static_cast<std::size_t>(entry.index)].push_back({pivots_[step].row, entry.value});
    }
  }
  for (const Pivot& pivot : pivots_)
    upper_columns_.append(by_position[static_cast<std::size_t>(pivot.position)]);
  return true;
}

void BasisFactor::solve(std::vector<double>& x) {
  for (std::size_t step = 0; step < pivots_.size(); ++step) {
    const double value = x[static_cast<std::size_t>(pivots_[step].row)];
    if (value == 0) continue;
    for (const SparseEntry& entry : lower_[step])
      x[static_cast<std::size_t>(entry.index)] -= entry.value * value;
  }
  for (std::size_t step = pivots_.size(); step-- > 0;) {
    const Pivot& pivot = pivots_[step];
    const double value = x[static_cast<std::size_t>(pivot.row)] / pivot.value;
    work_[static_cast<std::size_t>(pivot.position)] = value;
    if (value == 0) continue;
    for (const SparseEntry& entry : upper_columns_[step]) {
      x[static_cast<std::size_t>(entry.index)] -= entry.value * value;
    }
  }
  x.swap(work_);
  for (std::size_t i = 0; i < exchanges_.size(); ++i) {
    double& pivot = x[static_cast<std::size_t>(exchanges_[i].position)];
    if (pivot == 0) continue;
    const double value = pivot / exchanges_[i].value;
    for (const SparseEntry& entry : exchange_directions_[i]) {
      x[static_cast<std::size_t>(entry.index)] -= entry.value * value;
    }
    pivot = value;
  }
}

void BasisFactor::solve_transposed(std::vector<double>& y) {
  for (std::size_t i = exchanges_.size(); i-- > 0;) {
    double sum = y[static_cast<std::size_t>(exchanges_[i].position)];
    for (const SparseEntry& entry : exchange_directions_[i]) {
      sum -= entry.value * y[static_cast<std::size_t>(entry.index)];
    }
    y[static_cast<std::size_t>(exchanges_[i].position)] = sum / exchanges_[i].value;
  }
  for (std::size_t step = 0; step < pivots_.size(); ++step) {
    const Pivot& pivot = pivots_[step];
    const double value = y[static_cast<std::size_t>(pivot.position)] / pivot.value;
    work_[static_cast<std::size_t>(pivot.row)] = value;
    if (value == 0) continue;
    for (const SparseEntry& entry : upper_rows_[step])
      y[static_cast<std::size_t>(entry.index)] -= entry.value * value;
  }
  y.swap(work_);
  for (std::size_t step = pivots_.size(); step-- > 0;) {
    double sum = 0;
    for (const SparseEntry& entry : lower_[step])
      sum += entry.value * y[static_cast<std::size_t>(entry.index)];
    y[static_cast<std::size_t>(pivots_[step].row)] -= sum;
  }
}

void BasisFactor::exchange(std::int32_t position, std::span<const double> direction) {
  std::vector<SparseEntry> entries;
  for (std::size_t i = 0; i < direction.size(); ++i) {
    if (static_cast<std::int32_t>(i) != position && std::abs(direction[i]) > kNegligible) {
      entries.push_back({static_cast<std::int32_t>(i), direction[i]});
    }
  }
  exchange_directions_.append(entries);
  exchanges_.push_back({-1, position, direction[static_cast<std::size_t>(position)]});
}

}  // namespace plenum::packing
