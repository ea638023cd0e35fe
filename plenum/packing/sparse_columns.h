#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plenum::packing {

/// One non-zero of a sparse vector.
struct SparseEntry {
  std::int32_t index = 0;
  double value = 0;
};

/// Sparse columns, stored one after the other. Columns are only ever appended.
class SparseColumns {
 public:
  std::size_t size() const { return starts_.size() - 1; }

  std::span<const SparseEntry> operator[](std::size_t column) const {
    return std::span(entries_).subspan(starts_[column], starts_[column + 1] - starts_[column]);
  }

  void append(std::span<const SparseEntry> column) {
    entries_.insert(entries_.end(), column.begin(), column.end());
    starts_.push_back(entries_.size());
  }

  void clear() {
    starts_.resize(1);
    entries_.clear();
  }

 private:
  std::vector<std::size_t> starts_{0};
  std::vector<SparseEntry> entries_;
};

}  // namespace plenum::packing
