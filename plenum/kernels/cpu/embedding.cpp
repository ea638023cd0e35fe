#include "plenum/kernels/cpu/embedding.h"

#include <algorithm>
#include <array>

#include "plenum/kernels/cpu/layer_norm_gradient.h"
#include "plenum/kernels/cpu/layer_norm_row.h"
#include "plenum/kernels/cpu/row_dropout.h"
#include "plenum/kernels/cpu/row_tasks.h"

namespace plenum::kernels::cpu {
namespace {

void gather_row(const float* word, const float* position, const float* segment, float* z,
                std::int64_t width) {
  for_vectors(0, width, [&](std::int64_t i, auto n) {
    store_first(z + i, load_first(word + i, n) + load_first(position + i, n) + load_first(segment + i, n), n);
  });
}

// The gradient of one table: dtable[entry] += the sum of the rows of dz that read the entry. A task owns a
// stripe of columns of a run of entries, chosen so that no table has too few tasks: there are thousands of
// words but two segments.
class TableGradient {
  using Indices = std::span<const std::int32_t>;

 public:
  TableGradient(const RowGroups& groups, const float* dz_TD, const tensor::TensorView& dtable,
                std::int64_t first_entry = 0)
      : entries_(groups.num_groups() > 0 ? groups.entry_G.span<std::int32_t>() : Indices()),
        starts_(groups.num_groups() > 0 ? groups.start_G.span<std::int32_t>() : Indices()),
        rows_(groups.num_groups() > 0 ? groups.row_R.span<std::int32_t>() : Indices()),
        dz_TD_(dz_TD),
        dtable_(dtable.data<float>()),
        first_entry_(first_entry),
        num_entries_(dtable.size(0)),
        width_(dtable.size(1)),
        num_stripes_((width_ + kStripe - 1) / kStripe),
        num_runs_((static_cast<std::int64_t>(rows_.size()) + kRowsPerRun - 1) / kRowsPerRun) {}

  std::int64_t num_tasks() const { return num_runs_ * num_stripes_; }

  void run(std::int64_t task) const {
    const std::int64_t run = task / num_stripes_;
    const std::int64_t column = task % num_stripes_ * kStripe;
    const std::int64_t end = first_group(run + 1);
    for (std::int64_t group = first_group(run); group < end; ++group) {
      add_group(group, column, std::min(kStripe, width_ - column));
    }
  }

 private:
  static constexpr std::int64_t kStripe = 128;
  static constexpr std::int64_t kRowsPerRun = 256;

  // A run has the groups that begin within its rows.
  std::int64_t first_group(std::int64_t run) const {
    const auto starts = starts_.first(entries_.size());
    return std::lower_bound(starts.begin(), starts.end(), run * kRowsPerRun) - starts.begin();
  }

  void add_group(std::int64_t group, std::int64_t column, std::int64_t width) const {
    const auto index = static_cast<std::size_t>(group);
    const std::int64_t entry = entries_[index] - first_entry_;
    if (entry < 0 || entry >= num_entries_) return;
    std::array<float, kStripe> sums{};
    for (std::int32_t i = starts_[index]; i < starts_[index + 1]; ++i) {
      add(dz_TD_ + rows_[static_cast<std::size_t>(i)] * width_ + column, sums.data(), width);
    }
    add(sums.data(), dtable_ + entry * width_ + column, width);
  }

  static void add(const float* from, float* to, std::int64_t width) {
    for_vectors(0, width, [&](std::int64_t i, auto n) {
      store_first(to + i, load_first(to + i, n) + load_first(from + i, n), n);
    });
  }

  Indices entries_, starts_, rows_;
  const float* dz_TD_;
  float* dtable_;
  std::int64_t first_entry_, num_entries_;
  std::int64_t width_;
  std::int64_t num_stripes_;
  std::int64_t num_runs_;
};

}  // namespace

void embedding_forward(const tensor::Stream& stream, const EmbeddingForward& args) {
  const std::int64_t width = args.y_TD.size(1);
  const RowDropout dropout(args.dropout, args.rows, width);
  const bool is_looked_up = static_cast<bool>(args.looked_up_TD);
  const std::int32_t* const id_T = is_looked_up ? nullptr : args.id_T.data<std::int32_t>();
  const std::int32_t* const position_T = args.position_T.data<std::int32_t>();
  const std::int32_t* const segment_T = args.segment_T.data<std::int32_t>();
  const float* const words = (is_looked_up ? args.looked_up_TD : args.word_VD).data<float>();
  const float* const position_PD = args.position_PD.data<float>();
  const float* const segment_GD = args.segment_GD.data<float>();
  const float* const gamma = args.gamma_D.data<float>();
  const float* const beta = args.beta_D.data<float>();
  float* const z_TD = args.z_TD.data<float>();
  float* const y_TD = args.y_TD.data<float>();
  float* const mean_T = args.mean_T.data<float>();
  float* const inverse_deviation_T = args.inverse_deviation_T.data<float>();

  for_each_row(stream, args.y_TD.size(0), [&](std::int64_t row, std::size_t thread) {
    float* const z = z_TD + row * width;
    float* const y = y_TD + row * width;
    gather_row(words + (is_looked_up ? row : id_T[row]) * width, position_PD + position_T[row] * width,
               segment_GD + segment_T[row] * width, z, width);
    const RowMoments moments = row_moments(z, width, args.epsilon);
    normalise_row(z, moments, gamma, beta, y, width);
    if (dropout.is_on()) dropout.apply(row, y, y, RowDropout::buffer(stream, thread));
    mean_T[row] = moments.mean;
    inverse_deviation_T[row] = moments.inverse_deviation;
  });
}

void embedding_backward(const tensor::Stream& stream, const EmbeddingBackward& args) {
  const std::int64_t width = args.z_TD.size(1);
  const RowDropout dropout(args.dropout, args.rows, width);
  const float* const dy_TD = args.dy_TD.data<float>();
  const float* const z_TD = args.z_TD.data<float>();
  const float* const mean_T = args.mean_T.data<float>();
  const float* const inverse_deviation_T = args.inverse_deviation_T.data<float>();
  const float* const gamma = args.gamma_D.data<float>();
  float* const dz_TD = args.dz_TD.data<float>();

  const LayerNormGradient gradient(stream, args.z_TD.size(0), width);
  gradient.for_each_row([&](std::int64_t row, const LayerNormGradient::Sums& sums, std::size_t thread) {
    float* const dz = dz_TD + row * width;
    const float* dy = dy_TD + row * width;
    if (dropout.is_on()) {
      dropout.apply(row, dy, dz, RowDropout::buffer(stream, thread));
      dy = dz;
    }
    layer_norm_row_backward(dy, z_TD + row * width, {mean_T[row], inverse_deviation_T[row]}, gamma, dz,
                            sums.dgamma, sums.dbeta, width);
  });
  gradient.add_to(args.dgamma_D.data<float>(), args.dbeta_D.data<float>(), nullptr);

  // One run of the pool over the tasks of all three tables.
  const std::array<TableGradient, 3> tables = {
      TableGradient(args.by_word, dz_TD, args.dword_VD, args.words.first),
      TableGradient(args.by_position, dz_TD, args.dposition_PD),
      TableGradient(args.by_segment, dz_TD, args.dsegment_GD)};
  std::int64_t num_tasks = 0;
  for (const TableGradient& table : tables) num_tasks += table.num_tasks();
  stream.pool().run(static_cast<std::size_t>(num_tasks), [&](std::size_t index, std::size_t) {
    auto task = static_cast<std::int64_t>(index);
    for (const TableGradient& table : tables) {
      if (task < table.num_tasks()) return table.run(task);
      task -= table.num_tasks();
    }
  });
}

}  // namespace plenum::kernels::cpu
