#include <optional>

#include "tests/ops/table/op_table.h"
#include "tests/ops/vocabulary_loss_run.h"

namespace plenum::ops {
namespace {

using kernels::Accumulate;

struct VocabularyLossOptions {
  std::int64_t M, D, V;
  Accumulate accumulate = Accumulate::Yes;
};

class VocabularyLossCase final : public OpCase {
 public:
  VocabularyLossCase(tensor::Device device, const VocabularyLossOptions& o)
      : options_(o), run_(device, o.M, o.D, o.V), begun_w_(run_.dw_VD), begun_b_(run_.db_V) {
    if (o.accumulate == Accumulate::No) std::ranges::fill(run_.dw_VD.values(), NAN);
  }

  std::size_t scratch_bytes() const override { return kernels::vocabulary_loss_scratch_bytes(run_.device); }
  std::vector<OpCall> calls(Arguments& arguments) override {
    const kernels::VocabularyLossForward forward = run_.bind_forward(arguments);
    const kernels::VocabularyLossBackward backward =
        run_.bind_backward(arguments, forward.logits_MW, forward.lse_M, options_.accumulate);
    const double flops = 2.0 * static_cast<double>(options_.M * options_.D * options_.V);
    return {{"vocabulary_loss_forward",
             [=](const auto& stream) { kernels::vocabulary_loss_forward(stream, forward); }, flops,
             bytes_of({forward.h_MD, forward.w_VD, forward.b_V, forward.logits_MW})},
            {"vocabulary_loss_backward",
             [=](const auto& stream) { kernels::vocabulary_loss_backward(stream, backward); }, 2 * flops,
             bytes_of({backward.h_MD, backward.w_VD, backward.logits_MW, backward.dh_MD, backward.dw_VD,
                       backward.dw_VD})}};
  }
  void note(const std::string& function) override {
    if (function == "vocabulary_loss_forward") of_logits_.emplace(run_);
  }

  std::vector<OpResult> results() const override {
    const reference::VocabularyLoss reference = run_.reference();
    std::vector<double> logits;
    for (std::size_t row = 0; row < run_.masked(); ++row) {
      for (std::size_t word = 0; word < run_.vocabulary(); ++word) {
        logits.push_back(reference.logit(row, word));
      }
    }
    const auto gradients = reference.gradients(kVocabularyScale);
    // All gradients are sums of gradients of logits, which come from rounded logits.
    const double compute = compute_tolerance(run_.device);
    const double added = options_.M == 0 ? 0 : compute;  // without positions, to the bit
    const std::vector<double> dw =
        options_.accumulate == Accumulate::Yes ? plus(begun_w_.doubles(), gradients.dw_VD) : gradients.dw_VD;
    return {{"logits", of_logits_->logits, logits, compute},
            {"lse", run_.lse_M.doubles(), of_logits_->lse, kFloat32Relative},
            {"loss", run_.loss_M.doubles(), of_logits_->loss, kFloat32Relative},
            {"prediction", run_.prediction_M.doubles(), of_logits_->prediction, 0},
            {"dh", run_.dh_MD.doubles(), gradients.dh_MD, compute},
            {"dw", run_.dw_VD.doubles(), dw, added},
            {"db", run_.db_V.doubles(), plus(begun_b_.doubles(), gradients.db_V), added}};
  }

  std::vector<OpGradient> gradients() const override {
    const auto gradient = [this](std::string name, const TestTensor<float>& actual,
                                 std::vector<double> before,
                                 std::vector<double> reference::VocabularyLoss::*which) {
      return OpGradient{std::move(name),
                        actual.doubles(),
                        std::move(before),
                        run_.reference().*which,
                        [which, at = run_.reference()](const std::vector<double>& point) mutable {
                          at.*which = point;
                          return kVocabularyScale * at.total_loss();
                        },
                        compute_gradient_tolerance(run_.device)};
    };
    return {gradient("dh", run_.dh_MD, {}, &reference::VocabularyLoss::h_MD),
            gradient("dw", run_.dw_VD, begun_w_.doubles(), &reference::VocabularyLoss::w_VD),
            gradient("db", run_.db_V, begun_b_.doubles(), &reference::VocabularyLoss::b_V)};
  }

 private:
  VocabularyLossOptions options_;
  VocabularyLossRun run_;
  TestTensor<float> begun_w_, begun_b_;
  std::optional<ExpectedOfLogits> of_logits_;
};

OpShape shape(const VocabularyLossOptions& o, bool has_differences = false) {
  return op_shape<VocabularyLossCase>(
      fmt::format("M={} D={} V={}{}", o.M, o.D, o.V, o.accumulate == Accumulate::No ? " dw overwritten" : ""),
      o, has_differences);
}

}  // namespace

OpDescriptor vocabulary_loss_op() {
  return {.name = "vocabulary_loss",
          .functions = {"vocabulary_loss_forward", "vocabulary_loss_backward"},
          .shapes =
              [](tensor::Device) {
                // One row, one word, a tile to the brim, one word more, several tiles with a short last one,
                // many rows, more than are worked on at a time, and more words than a block of the GPU takes.
                std::vector<OpShape> shapes = {shape({3, 4, 7}, true), shape({0, 8, 600})};
                for (const VocabularyLossOptions& o : std::vector<VocabularyLossOptions>{{1, 5, 1},
                                                                                         {1, 3, 17},
                                                                                         {3, 16, 512},
                                                                                         {4, 7, 513},
                                                                                         {9, 33, 1200},
                                                                                         {70, 24, 1030},
                                                                                         {300, 8, 40},
                                                                                         {1100, 4, 21},
                                                                                         {33, 8, 9001}}) {
                  shapes.push_back(shape(o));
                }
                shapes.push_back(shape({0, 8, 40, Accumulate::No}));
                shapes.push_back(shape({9, 33, 1200, Accumulate::No}));
                return shapes;
              },
          .typical = shape({640, 768, 30522})};
}

}  // namespace plenum::ops
