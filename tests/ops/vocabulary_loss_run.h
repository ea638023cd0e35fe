#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "plenum/kernels/vocabulary_loss.h"

#include "tests/ops/op_arguments.h"
#include "tests/reference/class_loss.h"
#include "tests/reference/vocabulary_loss.h"

namespace plenum::ops {

inline constexpr double kVocabularyScale = 0.25;

/// Arguments of one case and everything the op wrote.
struct VocabularyLossRun {
  VocabularyLossRun(tensor::Device on, std::int64_t masked, std::int64_t width, std::int64_t vocabulary)
      : device(on),
        h_MD(rounded(random_tensor({masked, width}, 1), device)),
        w_VD(rounded(random_tensor({vocabulary, width}, 2), device)),
        b_V(rounded(random_tensor({vocabulary}, 3), device)),
        label_M({masked}),
        logits_MW({masked, kernels::vocabulary_stride(device, vocabulary)}, NAN),
        tiles_MN2({masked, kernels::vocabulary_tiles(device, vocabulary), 2}),
        lse_M({masked}),
        loss_M({masked}),
        prediction_M({masked}),
        dh_MD({masked, width}, 7.0F),
        dw_VD(random_tensor({vocabulary, width}, 4, 0.1)),
        db_V(random_tensor({vocabulary}, 5, 0.1)) {
    // The first and the last word are among the labels, and no label.
    for (std::int64_t row = 0; row < masked; ++row) {
      label_M.values()[static_cast<std::size_t>(row)] =
          row % 7 == 3
              ? -1
              : static_cast<std::int32_t>((row * (vocabulary / 2 + 1) + vocabulary - 1) % vocabulary);
    }
  }

  std::size_t masked() const { return static_cast<std::size_t>(h_MD.shape()[0]); }
  std::size_t vocabulary() const { return static_cast<std::size_t>(w_VD.shape()[0]); }
  std::string name() const { return fmt::format("M={} D={} V={}", masked(), h_MD.shape()[1], vocabulary()); }

  kernels::VocabularyLossForward bind_forward(Arguments& arguments) {
    return {.h_MD = arguments.in_compute(h_MD),
            .w_VD = arguments.in_compute(w_VD),
            .b_V = arguments.in_compute(b_V),
            .label_M = arguments.in(label_M),
            .logits_MW = arguments.out_compute(logits_MW),
            .tiles_MN2 = arguments.out(tiles_MN2),
            .lse_M = arguments.out(lse_M),
            .loss_M = arguments.out(loss_M),
            .prediction_M = arguments.out(prediction_M)};
  }
  /// With what forward has left where the op runs.
  kernels::VocabularyLossBackward bind_backward(Arguments& arguments, const tensor::TensorView& logits,
                                                const tensor::ConstTensorView& lse,
                                                kernels::Accumulate accumulate) {
    return {.h_MD = arguments.in_compute(h_MD),
            .w_VD = arguments.in_compute(w_VD),
            .label_M = arguments.in(label_M),
            .lse_M = lse,
            .scale_1 = arguments.in(scale_1),
            .logits_MW = logits,
            .dh_MD = arguments.out_compute(dh_MD),
            .dw_VD = arguments.out(dw_VD),
            .db_V = arguments.out(db_V),
            .accumulate = accumulate};
  }

  void forward(const OpContext& context) {
    Arguments arguments(context);
    kernels::vocabulary_loss_forward(context.stream(), bind_forward(arguments));
    arguments.fetch();
  }
  void backward(const OpContext& context, kernels::Accumulate accumulate = kernels::Accumulate::Yes) {
    Arguments arguments(context);
    kernels::vocabulary_loss_backward(
        context.stream(),
        bind_backward(arguments, arguments.out_compute(logits_MW), arguments.in(lse_M), accumulate));
    arguments.fetch();
  }

  /// The logits of a row, without what lies behind the vocabulary.
  std::span<const float> logits(std::size_t row) const {
    const auto stride = static_cast<std::size_t>(logits_MW.shape()[1]);
    return std::span(logits_MW.values()).subspan(row * stride, vocabulary());
  }

  reference::VocabularyLoss reference() const {
    return {masked(),        static_cast<std::size_t>(h_MD.shape()[1]),
            vocabulary(),    h_MD.doubles(),
            w_VD.doubles(),  b_V.doubles(),
            label_M.values()};
  }

  tensor::Device device;
  TestTensor<float> h_MD, w_VD, b_V;
  TestTensor<std::int32_t> label_M;
  TestTensor<double> scale_1{{1}, kVocabularyScale};
  TestTensor<float> logits_MW, tiles_MN2, lse_M, loss_M;
  TestTensor<std::int32_t> prediction_M;
  TestTensor<float> dh_MD, dw_VD, db_V;
};

/// What double precision makes of the logits that forward has left.
struct ExpectedOfLogits {
  std::vector<double> logits, lse, loss, prediction;

  explicit ExpectedOfLogits(const VocabularyLossRun& run) {
    for (std::size_t row = 0; row < run.masked(); ++row) {
      const std::span<const float> of_row = run.logits(row);
      logits.insert(logits.end(), of_row.begin(), of_row.end());
      const std::vector<double> as_double(of_row.begin(), of_row.end());
      const std::int32_t label = run.label_M.values()[row];
      lse.push_back(as_double[0] + reference::class_loss(as_double, {0}));
      loss.push_back(label < 0 ? 0 : reference::class_loss(as_double, {label}));
      prediction.push_back(static_cast<double>(std::ranges::max_element(of_row) - of_row.begin()));
    }
  }
};

}  // namespace plenum::ops
