#include "plenum/kernels/embedding.h"

#include <map>

#include <gtest/gtest.h>

#include "tests/ops/op_device.h"
#include "tests/reference/embedding.h"
#include "tests/reference/layer_norm.h"

namespace plenum::ops {
namespace {

using kernels::embedding_backward;
using kernels::embedding_forward;
using kernels::embedding_scratch_bytes;
using kernels::RowGroups;
using kernels::RowIdentities;

constexpr float kEpsilon = 1e-5F;
constexpr std::int64_t kPositions = 6;
constexpr std::int64_t kSegments = 2;

struct EmbeddingCase {
  std::int64_t rows;
  std::int64_t width;
  std::uint32_t threshold;
  std::int64_t num_padding = 0;  ///< rows at the end
  std::int64_t words = 11;

  std::string name() const {
    return fmt::format("T={} D={} threshold={} padding={} V={}", rows, width, threshold, num_padding, words);
  }
};

const std::vector<EmbeddingCase> kCases = {
    {1, 3, 0}, {1, 8, 26}, {9, 17, 26}, {13, 16, 0, 4}, {20, 33, 128, 3}};
/// Rows and columns of several tasks, the last of them short; groups of one row and of hundreds.
const std::vector<EmbeddingCase> kLargeCases = {
    {600, 150, 26, 5}, {1500, 256, 26, 5, 997}, {700, 1024, 26, 4}, {64, 1096, 0, 0, 997}, {129, 768, 128}};

std::vector<EmbeddingCase> all_cases() {
  std::vector<EmbeddingCase> cases = kCases;
  cases.insert(cases.end(), kLargeCases.begin(), kLargeCases.end());
  return cases;
}

/// The first `num_rows` rows by their id. On the GPU their numbers are rounded up: some groups have no entry,
/// and some places no row.
class OwnedGroups {
 public:
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

struct Result {
  TestTensor<float> z, y, mean, inverse_deviation;
  TestTensor<float> dz, dword, dposition, dsegment, dgamma, dbeta;
  friend bool operator==(const Result&, const Result&) = default;
};

class EmbeddingRun {
 public:
  EmbeddingRun(const EmbeddingCase& c, tensor::Device device)
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
        dy_(rounded(random_tensor({c.rows, c.width}, 6), device)) {
    for (std::int64_t row = 0; row < c.rows - c.num_padding; ++row) {
      const auto i = static_cast<std::size_t>(row);
      samples_.values()[i] = 5 + row / kPositions;
      ids_.values()[i] = static_cast<std::int32_t>(row * row % c.words);
      positions_.values()[i] = static_cast<std::int32_t>(row % kPositions);
      segments_.values()[i] = static_cast<std::int32_t>(row / 4 % kSegments);
    }
    std::fill_n(dy_.values().end() - c.num_padding * c.width, c.num_padding * c.width, 0.0F);
  }

  Result run() const { return run(OpContext(device_, scratch_bytes())); }
  /// On the CPU with more threads.
  Result run_threads(std::size_t num_threads) const { return run(OpContext(num_threads, scratch_bytes())); }

  /// What lies in the gradients beforehand.
  Result before() const {
    Result r;
    r.dword = random_tensor({case_.words, case_.width}, 11);
    r.dposition = random_tensor({kPositions, case_.width}, 12);
    r.dsegment = random_tensor({kSegments, case_.width}, 13);
    r.dgamma = random_tensor({case_.width}, 14);
    r.dbeta = random_tensor({case_.width}, 15);
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

  /// Differences of the reference by some elements of one of its parameters.
  std::vector<double> gradient(std::vector<double> Parameters::*which,
                               const std::vector<std::size_t>& elements) const {
    const std::vector<double> dy = dy_.doubles();
    Parameters p = parameters();
    std::vector<double> point;
    for (const std::size_t i : elements) point.push_back((p.*which)[i]);
    return numeric_gradient(point, [&](const std::vector<double>& at) {
      for (std::size_t i = 0; i < elements.size(); ++i) (p.*which)[elements[i]] = at[i];
      return dot(evaluate(p).y, dy);
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
  std::size_t scratch_bytes() const { return embedding_scratch_bytes(device_, case_.rows, case_.width) + 64; }

  Result run(const OpContext& context) const {
    const tensor::Shape shape = {case_.rows, case_.width};
    Result r = before();
    r.z = r.y = TestTensor<float>(shape, 9.0F);
    r.mean = r.inverse_deviation = TestTensor<float>({case_.rows}, 9.0F);
    r.dz = dy_;
    Arguments arguments(context);
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
        .z_TD = arguments.out_compute(r.z),
        .y_TD = arguments.out_compute(r.y),
        .mean_T = arguments.out(r.mean),
        .inverse_deviation_T = arguments.out(r.inverse_deviation)};
    embedding_forward(context.stream(), forward);
    const std::int64_t real = case_.rows - case_.num_padding;
    const OwnedGroups by_word(ids_.values(), real, device_);
    const OwnedGroups by_position(positions_.values(), real, device_);
    const OwnedGroups by_segment(segments_.values(), real, device_);
    const tensor::TensorView dz_TD = arguments.out_compute(r.dz);
    embedding_backward(context.stream(), {.dy_TD = dz_TD,
                                          .z_TD = forward.z_TD,
                                          .mean_T = forward.mean_T,
                                          .inverse_deviation_T = forward.inverse_deviation_T,
                                          .gamma_D = forward.gamma_D,
                                          .dropout = dropout_,
                                          .rows = forward.rows,
                                          .by_word = by_word.view(arguments),
                                          .by_position = by_position.view(arguments),
                                          .by_segment = by_segment.view(arguments),
                                          .dz_TD = dz_TD,
                                          .dword_VD = arguments.out(r.dword),
                                          .dposition_PD = arguments.out(r.dposition),
                                          .dsegment_GD = arguments.out(r.dsegment),
                                          .dgamma_D = arguments.out(r.dgamma),
                                          .dbeta_D = arguments.out(r.dbeta)});
    arguments.fetch();
    return r;
  }

  EmbeddingCase case_;
  tensor::Device device_;
  kernels::Dropout dropout_;
  TestTensor<std::int64_t> samples_;
  TestTensor<std::int32_t> ids_, positions_, segments_;
  TestTensor<float> word_, position_, segment_, gamma_, beta_, dy_;
};

class EmbeddingForward : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(On, EmbeddingForward, kDevices, device_of);
class EmbeddingBackward : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(On, EmbeddingBackward, kDevices, device_of);
class Embedding : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(On, Embedding, kDevices, device_of);

TEST_P(EmbeddingForward, AgreesWithTheReference) {
  for (const EmbeddingCase& c : all_cases()) {
    const EmbeddingRun run(c, device());
    const Result result = run.run();
    expect_near(result.z, run.evaluate(run.parameters()).z, "z " + c.name(), compute_tolerance(device()));
    const reference::LayerNorm expected = run.normalised(result.z);
    expect_near(result.y, expected.y, "y " + c.name(), compute_tolerance(device()));
    expect_near(result.mean, expected.mean, "mean " + c.name());
    expect_near(result.inverse_deviation, expected.inverse_deviation, "inverse deviation " + c.name());
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
  const EmbeddingRun run(c, tensor::Device::Cpu);
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
    expect_near(actual, plus(expected, run.gradient(gradient.parameter, elements)),
                gradient.name + (" " + c.name()), kGradientRelative);
  }
}

TEST(EmbeddingDifferences, AccumulateIntoExistingGradients) {
  for (const EmbeddingCase& c : kCases) expect_gradients(c, 1);
}

TEST(EmbeddingDifferences, AccumulateOverSeveralTasks) {
  expect_gradients(kLargeCases[0], 49);
}

TEST_P(EmbeddingBackward, AgreesWithTheReference) {
  for (const EmbeddingCase& c : all_cases()) {
    const EmbeddingRun run(c, device());
    const Result result = run.run();
    const Result before = run.before();
    const reference::LayerNormGradient expected = run.gradient_of_norm(result.z);
    expect_near(result.dz, expected.dz, "dz " + c.name(), compute_tolerance(device()));
    expect_near(result.dgamma, plus(before.dgamma.doubles(), expected.dgamma), "dgamma " + c.name());
    expect_near(result.dbeta, plus(before.dbeta.doubles(), expected.dbeta), "dbeta " + c.name());
  }
}

TEST_P(EmbeddingBackward, AddsRowsToEveryEntryTheyRead) {
  for (const EmbeddingCase& c : all_cases()) {
    const EmbeddingRun run(c, device());
    const Result result = run.run();
    const Result before = run.before();
    expect_near(result.dword, run.with_rows_of(before.dword, run.ids(), result.dz), "dword " + c.name());
    expect_near(result.dposition, run.with_rows_of(before.dposition, run.positions(), result.dz),
                "dposition " + c.name());
    expect_near(result.dsegment, run.with_rows_of(before.dsegment, run.segments(), result.dz),
                "dsegment " + c.name());
  }
}

TEST_P(Embedding, WritesTheSameBytesTwice) {
  const EmbeddingRun run(kLargeCases[1], device());
  EXPECT_EQ(run.run(), run.run());
}

TEST(EmbeddingOfThreads, WritesTheSameBytesForAnyNumberOfThreads) {
  const EmbeddingRun run({1100, 150, 26, 5}, tensor::Device::Cpu);
  EXPECT_EQ(run.run(), run.run_threads(3));
}

TEST_P(Embedding, DoesNothingWithoutRows) {
  const EmbeddingRun run({0, 8, 26}, device());
  EXPECT_EQ(run.run().dword, run.before().dword);
}

}  // namespace
}  // namespace plenum::ops
