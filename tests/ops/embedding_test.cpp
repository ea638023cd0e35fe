#include "plenum/kernels/embedding.h"

#include <map>

#include <gtest/gtest.h>

#include "plenum/kernels/layer_norm.h"

#include "tests/ops/op_testing.h"
#include "tests/reference/embedding.h"
#include "tests/reference/layer_norm.h"

namespace plenum::kernels {
namespace {

using ops::OpContext;
using ops::TestTensor;

constexpr float kEpsilon = 1e-5F;
constexpr std::int64_t kWords = 11;
constexpr std::int64_t kPositions = 6;
constexpr std::int64_t kSegments = 2;

struct EmbeddingCase {
  std::int64_t rows;
  std::int64_t width;
  std::uint32_t threshold;
  std::int64_t num_padding = 0;  ///< rows at the end

  std::string name() const {
    return fmt::format("T={} D={} threshold={} padding={}", rows, width, threshold, num_padding);
  }
};

const std::vector<EmbeddingCase> kCases = {
    {1, 3, 0}, {1, 8, 26}, {9, 17, 26}, {13, 16, 0, 4}, {20, 33, 128, 3}};
/// Rows and columns of several tasks, the last of them short.
constexpr EmbeddingCase kLargeCase = {600, 150, 26, 5};

struct OwnedGroups {
  std::vector<std::int32_t> entries;
  std::vector<std::int32_t> starts = {0};
  std::vector<std::int32_t> rows;

  OwnedGroups(const std::vector<std::int32_t>& ids, std::int64_t num_rows) {
    std::map<std::int32_t, std::vector<std::int32_t>> by_id;
    for (std::int64_t row = 0; row < num_rows; ++row) {
      by_id[ids[static_cast<std::size_t>(row)]].push_back(static_cast<std::int32_t>(row));
    }
    for (const auto& [id, rows_of_id] : by_id) {
      entries.push_back(id);
      rows.insert(rows.end(), rows_of_id.begin(), rows_of_id.end());
      starts.push_back(static_cast<std::int32_t>(rows.size()));
    }
  }
  RowGroups view() const {
    return {.entry_G = view_of(entries), .start_G = view_of(starts), .row_R = view_of(rows)};
  }
  static tensor::ConstTensorView view_of(const std::vector<std::int32_t>& values) {
    return {values.data(), {static_cast<std::int64_t>(values.size())}};
  }
};

struct Result {
  TestTensor<float> z, y, mean, inverse_deviation;
  TestTensor<float> dz, dword, dposition, dsegment, dgamma, dbeta;
  friend bool operator==(const Result&, const Result&) = default;
};

class EmbeddingRun {
 public:
  explicit EmbeddingRun(const EmbeddingCase& c)
      : case_(c),
        dropout_{.threshold = c.threshold, .key = base::RandomFunction(2, base::Purpose::Dropout, 8).key()},
        samples_({c.rows}),
        ids_({c.rows}),
        positions_({c.rows}),
        segments_({c.rows}),
        word_(ops::random_tensor({kWords, c.width}, 1)),
        position_(ops::random_tensor({kPositions, c.width}, 2)),
        segment_(ops::random_tensor({kSegments, c.width}, 3)),
        gamma_(ops::random_tensor({c.width}, 4)),
        beta_(ops::random_tensor({c.width}, 5)),
        dy_(ops::random_tensor({c.rows, c.width}, 6)) {
    for (std::int64_t row = 0; row < c.rows - c.num_padding; ++row) {
      const auto i = static_cast<std::size_t>(row);
      samples_.values()[i] = 5 + row / kPositions;
      ids_.values()[i] = static_cast<std::int32_t>(row * row % kWords);
      positions_.values()[i] = static_cast<std::int32_t>(row % kPositions);
      segments_.values()[i] = static_cast<std::int32_t>(row / 4 % kSegments);
    }
    std::fill_n(dy_.values().end() - c.num_padding * c.width, c.num_padding * c.width, 0.0F);
  }

  Result run(std::size_t num_threads = 1) const {
    const OpContext context(num_threads, layer_norm_scratch_bytes(tensor::Device::Cpu, case_.width) + 64);
    const tensor::Shape shape = {case_.rows, case_.width};
    Result r = before();
    r.z = r.y = r.dz = TestTensor<float>(shape, 9.0F);
    r.mean = r.inverse_deviation = TestTensor<float>({case_.rows}, 9.0F);
    const RowIdentities rows = {.sample_T = samples_, .position_T = positions_};
    embedding_forward(context.stream(), {.id_T = ids_,
                                         .position_T = positions_,
                                         .segment_T = segments_,
                                         .word_VD = word_,
                                         .position_PD = position_,
                                         .segment_GD = segment_,
                                         .gamma_D = gamma_,
                                         .beta_D = beta_,
                                         .epsilon = kEpsilon,
                                         .dropout = dropout_,
                                         .rows = rows,
                                         .z_TD = r.z,
                                         .y_TD = r.y,
                                         .mean_T = r.mean,
                                         .inverse_deviation_T = r.inverse_deviation});
    const std::int64_t real = case_.rows - case_.num_padding;
    const OwnedGroups by_word(ids_.values(), real);
    const OwnedGroups by_position(positions_.values(), real);
    const OwnedGroups by_segment(segments_.values(), real);
    r.dz = dy_;
    embedding_backward(context.stream(), {.dy_TD = r.dz,
                                          .z_TD = r.z,
                                          .mean_T = r.mean,
                                          .inverse_deviation_T = r.inverse_deviation,
                                          .gamma_D = gamma_,
                                          .dropout = dropout_,
                                          .rows = rows,
                                          .by_word = by_word.view(),
                                          .by_position = by_position.view(),
                                          .by_segment = by_segment.view(),
                                          .dz_TD = r.dz,
                                          .dword_VD = r.dword,
                                          .dposition_PD = r.dposition,
                                          .dsegment_GD = r.dsegment,
                                          .dgamma_D = r.dgamma,
                                          .dbeta_D = r.dbeta});
    return r;
  }

  /// What lies in the gradients beforehand.
  Result before() const {
    Result r;
    r.dword = ops::random_tensor({kWords, case_.width}, 11);
    r.dposition = ops::random_tensor({kPositions, case_.width}, 12);
    r.dsegment = ops::random_tensor({kSegments, case_.width}, 13);
    r.dgamma = ops::random_tensor({case_.width}, 14);
    r.dbeta = ops::random_tensor({case_.width}, 15);
    return r;
  }

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
    result.y = reference::drop_rows(dropout_, result.y, samples_.values(), positions_.values());
    return result;
  }

  /// Differences of the reference by some elements of one of its parameters.
  std::vector<double> gradient(std::vector<double> Parameters::*which,
                               const std::vector<std::size_t>& elements) const {
    const std::vector<double> dy = dy_.doubles();
    Parameters p = parameters();
    std::vector<double> point;
    for (const std::size_t i : elements) point.push_back((p.*which)[i]);
    return ops::numeric_gradient(point, [&](const std::vector<double>& at) {
      for (std::size_t i = 0; i < elements.size(); ++i) (p.*which)[elements[i]] = at[i];
      return ops::dot(evaluate(p).y, dy);
    });
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

  const TestTensor<std::int32_t>& ids() const { return ids_; }
  const TestTensor<std::int32_t>& positions() const { return positions_; }
  const TestTensor<std::int32_t>& segments() const { return segments_; }

 private:
  EmbeddingCase case_;
  Dropout dropout_;
  TestTensor<std::int64_t> samples_;
  TestTensor<std::int32_t> ids_, positions_, segments_;
  TestTensor<float> word_, position_, segment_, gamma_, beta_, dy_;
};

TEST(EmbeddingForward, AgreesWithTheReference) {
  std::vector<EmbeddingCase> cases = kCases;
  cases.push_back(kLargeCase);
  for (const EmbeddingCase& c : cases) {
    const EmbeddingRun run(c);
    const Result result = run.run();
    const reference::LayerNorm expected = run.evaluate(run.parameters());
    ops::expect_near(result.z, expected.z, "z " + c.name());
    ops::expect_near(result.y, expected.y, "y " + c.name());
    ops::expect_near(result.mean, expected.mean, "mean " + c.name());
    ops::expect_near(result.inverse_deviation, expected.inverse_deviation, "inverse deviation " + c.name());
  }
}

/// A gradient, the parameter it belongs to and their name.
struct Gradient {
  const char* name;
  TestTensor<float> Result::*actual;
  std::vector<double> EmbeddingRun::Parameters::*parameter;
};
constexpr Gradient kGradients[] = {{"dword", &Result::dword, &EmbeddingRun::Parameters::word},
                                   {"dposition", &Result::dposition, &EmbeddingRun::Parameters::position},
                                   {"dsegment", &Result::dsegment, &EmbeddingRun::Parameters::segment},
                                   {"dgamma", &Result::dgamma, &EmbeddingRun::Parameters::gamma},
                                   {"dbeta", &Result::dbeta, &EmbeddingRun::Parameters::beta}};

/// Compares every `step`-th element of all gradients with differences of the reference.
void expect_gradients(const EmbeddingCase& c, std::size_t step) {
  const EmbeddingRun run(c);
  const Result result = run.run();
  for (const Gradient& gradient : kGradients) {
    const TestTensor<float> before = run.before().*gradient.actual;
    std::vector<std::size_t> elements;
    std::vector<float> actual;
    std::vector<double> expected;
    for (std::size_t i = 0; i < before.values().size(); i += step) {
      elements.push_back(i);
      actual.push_back((result.*gradient.actual).values()[i]);
      expected.push_back(before.values()[i]);
    }
    ops::expect_near(actual, ops::plus(expected, run.gradient(gradient.parameter, elements)),
                     gradient.name + (" " + c.name()), ops::kGradientRelative);
  }
}

TEST(EmbeddingBackward, AccumulatesIntoExistingGradients) {
  for (const EmbeddingCase& c : kCases) expect_gradients(c, 1);
}

TEST(EmbeddingBackward, AccumulatesOverSeveralTasks) {
  expect_gradients(kLargeCase, 49);
}

TEST(EmbeddingBackward, AddsRowsToEveryEntryTheyRead) {
  const EmbeddingRun run(kLargeCase);
  const Result result = run.run();
  const Result before = run.before();
  ops::expect_near(result.dword, run.with_rows_of(before.dword, run.ids(), result.dz), "dword");
  ops::expect_near(result.dposition, run.with_rows_of(before.dposition, run.positions(), result.dz),
                   "dposition");
  ops::expect_near(result.dsegment, run.with_rows_of(before.dsegment, run.segments(), result.dz), "dsegment");
}

TEST(Embedding, WritesTheSameBytesTwiceAndForAnyNumberOfThreads) {
  const EmbeddingRun run({1100, 150, 26, 5});
  const Result once = run.run(1);
  EXPECT_EQ(once, run.run(1));
  EXPECT_EQ(once, run.run(3));
}

TEST(Embedding, DoesNothingWithoutRows) {
  const EmbeddingRun run({0, 8, 26});
  EXPECT_EQ(run.run().dword, run.before().dword);
}

}  // namespace
}  // namespace plenum::kernels
