#include "plenum/kernels/embedding.h"

#include <map>

#include <fmt/format.h>

#include "tests/ops/table/op_table.h"
#include "tests/reference/embedding.h"
#include "tests/reference/layer_norm.h"

namespace plenum::ops {
namespace {

using kernels::embedding_backward;
using kernels::embedding_forward;
using kernels::embedding_scratch_bytes;
using kernels::RowGroups;

constexpr float kEpsilon = 1e-5F;
constexpr std::int64_t kPositions = 6;
constexpr std::int64_t kSegments = 2;

struct EmbeddingShape {
  std::int64_t rows;
  std::int64_t width;
  std::uint32_t threshold;
  std::int64_t num_padding = 0;  ///< rows at the end
  std::int64_t words = 11;

  std::string name() const {
    return fmt::format("T={} D={} threshold={} padding={} V={}", rows, width, threshold, num_padding, words);
  }
};

/// The first `num_rows` rows by their id. On the GPU their numbers are rounded up: some groups have no entry,
/// and some places no row.
class OwnedGroups {
 public:
  OwnedGroups() = default;
  OwnedGroups(const std::vector<std::int32_t>& ids, std::int64_t num_rows, tensor::Device device) {
    std::map<std::int32_t, std::vector<std::int32_t>> by_id;
    for (std::int64_t row = 0; row < num_rows; ++row) {
      by_id[ids[static_cast<std::size_t>(row)]].push_back(static_cast<std::int32_t>(row));
    }
    std::vector<std::int32_t> entries;
    std::vector<std::int32_t> starts = {0};
    std::vector<std::int32_t> rows;
    for (const auto& [id, rows_of_id] : by_id) {
      entries.push_back(id);
      rows.insert(rows.end(), rows_of_id.begin(), rows_of_id.end());
      starts.push_back(static_cast<std::int32_t>(rows.size()));
    }
    if (device == tensor::Device::Cuda) {
      entries.insert(entries.end(), 3, -1);
      starts.insert(starts.end(), 3, starts.back());
      rows.resize(ids.size(), -1);
    }
    entry_G_ = tensor_of(entries);
    start_G_ = tensor_of(starts);
    row_R_ = tensor_of(rows);
  }

  RowGroups view(Arguments& arguments) const {
    return {
        .entry_G = arguments.in(entry_G_), .start_G = arguments.in(start_G_), .row_R = arguments.in(row_R_)};
  }

 private:
  static TestTensor<std::int32_t> tensor_of(const std::vector<std::int32_t>& values) {
    return {{static_cast<std::int64_t>(values.size())}, values};
  }

  TestTensor<std::int32_t> entry_G_, start_G_, row_R_;
};

class EmbeddingCase final : public OpCase {
 public:
  EmbeddingCase(tensor::Device device, const EmbeddingShape& c)
      : case_(c),
        device_(device),
        dropout_{.threshold = c.threshold, .key = base::RandomFunction(2, base::Purpose::Dropout, 8).key()},
        samples_({c.rows}),
        ids_({c.rows}),
        positions_({c.rows}),
        segments_({c.rows}),
        word_(rounded(random_tensor({c.words, c.width}, 1), device)),
        position_(rounded(random_tensor({kPositions, c.width}, 2), device)),
        segment_(rounded(random_tensor({kSegments, c.width}, 3), device)),
        gamma_(random_tensor({c.width}, 4)),
        beta_(random_tensor({c.width}, 5)),
        dy_(rounded(random_tensor({c.rows, c.width}, 6), device)),
        z_({c.rows, c.width}, NAN),
        y_({c.rows, c.width}, NAN),
        mean_({c.rows}, NAN),
        inverse_deviation_({c.rows}, NAN),
        dword_(begun_word()),
        dposition_(begun_position()),
        dsegment_(begun_segment()),
        dgamma_(begun_gamma()),
        dbeta_(begun_beta()) {
    for (std::int64_t row = 0; row < c.rows - c.num_padding; ++row) {
      const auto i = static_cast<std::size_t>(row);
      samples_.values()[i] = 5 + row / kPositions;
      ids_.values()[i] = static_cast<std::int32_t>(row * row % c.words);
      positions_.values()[i] = static_cast<std::int32_t>(row % kPositions);
      segments_.values()[i] = static_cast<std::int32_t>(row / 4 % kSegments);
    }
    std::fill_n(dy_.values().end() - c.num_padding * c.width, c.num_padding * c.width, 0.0F);
    dz_ = dy_;
    const std::int64_t real = c.rows - c.num_padding;
    by_word_ = OwnedGroups(ids_.values(), real, device);
    by_position_ = OwnedGroups(positions_.values(), real, device);
    by_segment_ = OwnedGroups(segments_.values(), real, device);
  }

  std::size_t scratch_bytes() const override {
    return embedding_scratch_bytes(device_, case_.rows, case_.width) + 64;
  }

  std::vector<OpCall> calls(Arguments& arguments) override {
    const tensor::ConstTensorView position_T = arguments.in(positions_);
    const kernels::EmbeddingForward forward = {
        .id_T = arguments.in(ids_),
        .position_T = position_T,
        .segment_T = arguments.in(segments_),
        .word_VD = arguments.in_compute(word_),
        .position_PD = arguments.in_compute(position_),
        .segment_GD = arguments.in_compute(segment_),
        .gamma_D = arguments.in(gamma_),
        .beta_D = arguments.in(beta_),
        .epsilon = kEpsilon,
        .dropout = dropout_,
        .rows = {.sample_T = arguments.in(samples_), .position_T = position_T},
        .z_TD = arguments.out_compute(z_),
        .y_TD = arguments.out_compute(y_),
        .mean_T = arguments.out(mean_),
        .inverse_deviation_T = arguments.out(inverse_deviation_)};
    const tensor::TensorView dz_TD = arguments.out_compute(dz_);
    const kernels::EmbeddingBackward backward = {.dy_TD = dz_TD,
                                                 .z_TD = forward.z_TD,
                                                 .mean_T = forward.mean_T,
                                                 .inverse_deviation_T = forward.inverse_deviation_T,
                                                 .gamma_D = forward.gamma_D,
                                                 .dropout = dropout_,
                                                 .rows = forward.rows,
                                                 .by_word = by_word_.view(arguments),
                                                 .by_position = by_position_.view(arguments),
                                                 .by_segment = by_segment_.view(arguments),
                                                 .dz_TD = dz_TD,
                                                 .dword_VD = arguments.out(dword_),
                                                 .dposition_PD = arguments.out(dposition_),
                                                 .dsegment_GD = arguments.out(dsegment_),
                                                 .dgamma_D = arguments.out(dgamma_),
                                                 .dbeta_D = arguments.out(dbeta_)};
    return {{"embedding_forward", [=](const auto& stream) { embedding_forward(stream, forward); }, 0,
             bytes_of({forward.z_TD, forward.z_TD, forward.y_TD})},
            {"embedding_backward", [=](const auto& stream) { embedding_backward(stream, backward); }, 0,
             bytes_of({backward.dy_TD, backward.z_TD, backward.dz_TD, backward.dz_TD})}};
  }

  std::vector<OpResult> results() const override {
    const double compute = compute_tolerance(device_);
    const double added = case_.rows == 0 ? 0 : kFloat32Relative;  // without rows, to the bit
    const reference::LayerNorm forward = normalised(z_);
    const reference::LayerNormGradient backward = gradient_of_norm(z_);
    return {{"z", z_.doubles(), evaluate(parameters()).z, compute},
            {"y", y_.doubles(), forward.y, compute},
            {"mean", mean_.doubles(), forward.mean, kFloat32Relative},
            {"inverse deviation", inverse_deviation_.doubles(), forward.inverse_deviation, kFloat32Relative},
            {"dz", dz_.doubles(), backward.dz, compute},
            {"dgamma", dgamma_.doubles(), plus(begun_gamma().doubles(), backward.dgamma), added},
            {"dbeta", dbeta_.doubles(), plus(begun_beta().doubles(), backward.dbeta), added},
            {"dword", dword_.doubles(), with_rows_of(begun_word(), ids_, dz_), added},
            {"dposition", dposition_.doubles(), with_rows_of(begun_position(), positions_, dz_), added},
            {"dsegment", dsegment_.doubles(), with_rows_of(begun_segment(), segments_, dz_), added}};
  }

  /// On the GPU, where z is rounded, the norm is another function than the oracle's.
  std::vector<OpGradient> gradients() const override {
    if (device_ == tensor::Device::Cuda) return {};
    return {gradient("dword", dword_, begun_word(), &Parameters::word),
            gradient("dposition", dposition_, begun_position(), &Parameters::position),
            gradient("dsegment", dsegment_, begun_segment(), &Parameters::segment),
            gradient("dgamma", dgamma_, begun_gamma(), &Parameters::gamma),
            gradient("dbeta", dbeta_, begun_beta(), &Parameters::beta)};
  }

 private:
  struct Parameters {
    std::vector<double> word, position, segment, gamma, beta;
  };
  Parameters parameters() const {
    return {word_.doubles(), position_.doubles(), segment_.doubles(), gamma_.doubles(), beta_.doubles()};
  }

  reference::LayerNorm evaluate(const Parameters& p) const {
    reference::LayerNorm result = reference::layer_norm(
        reference::embedding_sum(ids_.values(), positions_.values(), segments_.values(), p.word, p.position,
                                 p.segment, static_cast<std::size_t>(case_.width)),
        p.gamma, p.beta, kEpsilon);
    result.y = dropped(result.y);
    return result;
  }

  /// What must come of z as it was kept.
  reference::LayerNorm normalised(const TestTensor<float>& z) const {
    reference::LayerNorm result =
        reference::layer_norm(z.doubles(), gamma_.doubles(), beta_.doubles(), kEpsilon);
    result.y = dropped(result.y);
    return result;
  }
  reference::LayerNormGradient gradient_of_norm(const TestTensor<float>& z) const {
    return reference::layer_norm_gradient(z.doubles(), gamma_.doubles(), dropped(dy_.doubles()), kEpsilon);
  }
  std::vector<double> dropped(const std::vector<double>& y) const {
    return reference::drop_rows(dropout_, y, samples_.values(), positions_.values());
  }

  OpGradient gradient(std::string name, const TestTensor<float>& actual, const TestTensor<float>& before,
                      std::vector<double> Parameters::*which) const {
    return {std::move(name),
            actual.doubles(),
            before.doubles(),
            parameters().*which,
            [this, which, p = parameters(), dy = dy_.doubles()](const std::vector<double>& at) mutable {
              p.*which = at;
              return dot(evaluate(p).y, dy);
            },
            kFloat32Gradient};
  }

  /// The gradient of a table by definition: what lies there beforehand and the rows of dz that read an entry.
  std::vector<double> with_rows_of(const TestTensor<float>& before, const TestTensor<std::int32_t>& entries,
                                   const TestTensor<float>& dz) const {
    const auto width = static_cast<std::size_t>(case_.width);
    std::vector<double> sums = before.doubles();
    for (std::size_t row = 0; row < entries.values().size(); ++row) {
      const auto entry = static_cast<std::size_t>(entries.values()[row]);
      for (std::size_t i = 0; i < width; ++i) sums[entry * width + i] += dz.values()[row * width + i];
    }
    return sums;
  }

  // What lies in the gradients beforehand.
  TestTensor<float> begun_word() const { return random_tensor(word_.shape(), 11); }
  TestTensor<float> begun_position() const { return random_tensor(position_.shape(), 12); }
  TestTensor<float> begun_segment() const { return random_tensor(segment_.shape(), 13); }
  TestTensor<float> begun_gamma() const { return random_tensor(gamma_.shape(), 14); }
  TestTensor<float> begun_beta() const { return random_tensor(beta_.shape(), 15); }

  EmbeddingShape case_;
  tensor::Device device_;
  kernels::Dropout dropout_;
  TestTensor<std::int64_t> samples_;
  TestTensor<std::int32_t> ids_, positions_, segments_;
  TestTensor<float> word_, position_, segment_, gamma_, beta_, dy_;
  TestTensor<float> z_, y_, mean_, inverse_deviation_, dz_, dword_, dposition_, dsegment_, dgamma_, dbeta_;
  OwnedGroups by_word_, by_position_, by_segment_;
};

OpShape shape(const EmbeddingShape& o, bool has_differences = false) {
  return op_shape<EmbeddingCase>(o.name(), o, has_differences);
}

}  // namespace

OpDescriptor embedding_op() {
  return {.name = "embedding",
          .functions = {"embedding_forward", "embedding_backward"},
          .shapes = [](tensor::Device) -> std::vector<OpShape> {
            // The large ones have rows and columns of several tasks, the last of them short; groups of one
            // row and of hundreds.
            return {shape({1, 3, 0}, true),       shape({1, 8, 26}, true),        shape({9, 17, 26}, true),
                    shape({13, 16, 0, 4}, true),  shape({20, 33, 128, 3}, true),  shape({0, 8, 26}),
                    shape({600, 150, 26, 5}),     shape({1500, 256, 26, 5, 997}), shape({700, 1024, 26, 4}),
                    shape({64, 1096, 0, 0, 997}), shape({129, 768, 128})};
          },
          .typical = shape({4096, 768, 26, 0, 30522})};
}

}  // namespace plenum::ops
