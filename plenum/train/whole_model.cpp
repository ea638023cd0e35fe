#include "plenum/train/whole_model.h"

#include <algorithm>

#include "plenum/base/check.h"
#include "plenum/describe/bert.h"
#include "plenum/describe/tensor_parallel.h"

namespace plenum::train {

using describe::Parameter;

std::size_t WholeModel::num_bytes(const describe::ModelConfig& model) {
  const describe::ParameterTable table(describe::describe_bert(model));
  return static_cast<std::size_t>(table.num_elements()) * sizeof(float);
}

WholeModel::WholeModel(const describe::ModelConfig& model, std::size_t num_slices)
    : table_(describe::describe_bert(model)),
      weights_(static_cast<std::size_t>(table_.num_elements())),
      weights_N_(weights_.data(), {table_.num_elements()}) {
  for (std::size_t i = 0; i < num_slices; ++i)
    slices_.emplace_back(describe::tensor_parallel_slice(table_.model(), {.index = i, .size = num_slices}));
}

void WholeModel::scatter(std::size_t slice, std::span<float> slice_N) const {
  const describe::ParameterTable& table = slices_[slice];
  for (std::size_t i = 0; i < table.parameters().size(); ++i) {
    for_each_run(table[i], [&](std::int64_t first, std::int64_t own, std::int64_t count) {
      std::copy_n(weights_.data() + table_[i].begin + first, count, slice_N.data() + table[i].begin + own);
    });
  }
}

void WholeModel::place(std::size_t slice, std::size_t parameter, const float* values) {
  for_each_run(slices_[slice][parameter], [&](std::int64_t first, std::int64_t own, std::int64_t count) {
    std::copy_n(values + own, count, weights_.data() + table_[parameter].begin + first);
  });
}

void WholeModel::gather(std::span<const std::span<const float>> slices) {
  base::check(slices.size() == slices_.size(), "a model is whole with {} slices: {}", slices_.size(),
              slices.size());
  for (std::size_t slice = 0; slice < slices.size(); ++slice) {
    for (std::size_t i = 0; i < table_.parameters().size(); ++i) {
      const Parameter& parameter = slices_[slice][i];
      if (slice == 0 || parameter.slice) place(slice, i, slices[slice].data() + parameter.begin);
    }
  }
}

void WholeModel::gather(std::span<const float> own, comm::Communicator& group) {
  base::check(group.size() == slices_.size(), "a model is whole with {} slices: {}", slices_.size(),
              group.size());
  std::vector<float> values;  // of one tensor, slice behind slice
  std::vector<std::size_t> counts(group.size());
  for (std::size_t i = 0; i < table_.parameters().size(); ++i) {
    const Parameter& parameter = slices_[group.index()][i];
    const auto own_values = own.subspan(static_cast<std::size_t>(parameter.begin),
                                        static_cast<std::size_t>(parameter.num_elements()));
    if (!parameter.slice) {
      place(group.index(), i, own_values.data());
      continue;
    }
    for (std::size_t slice = 0; slice < counts.size(); ++slice)
      counts[slice] = static_cast<std::size_t>(slices_[slice][i].num_elements());
    values.resize(static_cast<std::size_t>(table_[i].num_elements()));
    group.start_all_gather(comm::elements_of(own_values), comm::elements_of(std::span(values)), counts, i)
        .wait();
    const float* next = values.data();
    for (std::size_t slice = 0; slice < counts.size(); ++slice) {
      place(slice, i, next);
      next += counts[slice];
    }
  }
}

void WholeModel::add_pieces(std::size_t slice, const model::FlatPiece& part, Which which,
                            std::vector<model::FlatPiece>& pieces) const {
  const describe::ParameterTable& table = slices_[slice];
  const std::int64_t part_end = part.begin + std::ssize(part.values);
  for (std::size_t i = 0; i < table.parameters().size(); ++i) {
    if ((which == Which::Divided) != table[i].slice.has_value()) continue;
    if (table[i].begin >= part_end || table[i].end() <= part.begin) continue;
    for_each_run(table[i], [&](std::int64_t first, std::int64_t own, std::int64_t count) {
      const std::int64_t begin = std::max(table[i].begin + own, part.begin);
      const std::int64_t end = std::min(table[i].begin + own + count, part_end);
      if (begin >= end) return;
      pieces.push_back({table_[i].begin + first + begin - (table[i].begin + own),
                        part.values.subspan(static_cast<std::size_t>(begin - part.begin),
                                            static_cast<std::size_t>(end - begin))});
    });
  }
}

}  // namespace plenum::train
