#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "plenum/kernels/vocabulary_loss.h"

#include "tests/ops/table/op_table.h"

namespace plenum::ops {
namespace {

struct PartsOptions {
  std::int64_t P, M;
};

/// What slices of a vocabulary know of logits, one of which each slice has no more of than its greatest and
/// its sum: the oracle needs no vocabulary.
class VocabularyPartsCase final : public OpCase {
 public:
  VocabularyPartsCase(tensor::Device /*device*/, const PartsOptions& o)
      : options_(o),
        part_PM4_({o.P, o.M, 4}),
        label_M_({o.M}),
        lse_M_({o.M}),
        loss_M_({o.M}),
        prediction_M_({o.M}) {
    const TestTensor<float> random = random_tensor({o.P, o.M, 2}, 1);
    for (std::int64_t p = 0; p < o.P; ++p) {
      for (std::int64_t row = 0; row < o.M; ++row) {
        const auto at = static_cast<std::size_t>(p * o.M + row);
        float* const part = part_PM4_.values().data() + 4 * at;
        part[0] = 20 * random.values()[2 * at];
        part[1] = 1 + 30 * std::abs(random.values()[2 * at + 1]);
        part[2] = row % o.P == p ? part[0] - 1 : 0;
        part[3] = static_cast<float>(1000 * p + row % 1000);
      }
    }
    for (std::int64_t row = 0; row < o.M; ++row) {
      label_M_.values()[static_cast<std::size_t>(row)] =
          row % 7 == 3 ? -1 : static_cast<std::int32_t>(1000 * (row % o.P));
    }
  }

  std::vector<OpCall> calls(Arguments& arguments) override {
    const kernels::VocabularyParts combine{.part_PM4 = arguments.in(part_PM4_),
                                           .label_M = arguments.in(label_M_),
                                           .lse_M = arguments.out(lse_M_),
                                           .loss_M = arguments.out(loss_M_),
                                           .prediction_M = arguments.out(prediction_M_)};
    return {
        {"combine_vocabulary_parts",
         [=](const auto& stream) { kernels::combine_vocabulary_parts(stream, combine); }, 0,
         bytes_of({combine.part_PM4, combine.label_M, combine.lse_M, combine.loss_M, combine.prediction_M})}};
  }

  std::vector<OpResult> results() const override {
    std::vector<double> lse;
    std::vector<double> loss;
    std::vector<double> prediction;
    for (std::int64_t row = 0; row < options_.M; ++row) {
      double sum = 0;
      double logit = 0;
      const float* best = nullptr;
      for (std::int64_t p = 0; p < options_.P; ++p) {
        const float* const part = part_PM4_.values().data() + 4 * (p * options_.M + row);
        sum += double{part[1]} * std::exp(double{part[0]});
        logit += part[2];
        if (best == nullptr || part[0] > best[0]) best = part;
      }
      lse.push_back(std::log(sum));
      loss.push_back(label_M_.values()[static_cast<std::size_t>(row)] < 0 ? 0 : std::log(sum) - logit);
      prediction.push_back(best[3]);
    }
    return {{"lse", lse_M_.doubles(), lse, kFloat32Relative},
            {"loss", loss_M_.doubles(), loss, kFloat32Relative},
            {"prediction", prediction_M_.doubles(), prediction, 0}};
  }

 private:
  PartsOptions options_;
  TestTensor<float> part_PM4_;
  TestTensor<std::int32_t> label_M_;
  TestTensor<float> lse_M_, loss_M_;
  TestTensor<std::int32_t> prediction_M_;
};

OpShape shape(const PartsOptions& o) {
  return op_shape<VocabularyPartsCase>(fmt::format("P={} M={}", o.P, o.M), o);
}

}  // namespace

OpDescriptor vocabulary_parts_op() {
  return {.name = "vocabulary_parts",
          .functions = {"combine_vocabulary_parts"},
          .shapes =
              [](tensor::Device) {
                return std::vector<OpShape>{shape({1, 1}), shape({2, 3}), shape({3, 0}), shape({4, 257}),
                                            shape({8, 1100})};
              },
          .typical = shape({2, 640})};
}

}  // namespace plenum::ops
