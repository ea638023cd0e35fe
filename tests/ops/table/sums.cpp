#include <array>

#include <fmt/format.h>

#include "plenum/kernels/column_sums.h"
#include "plenum/kernels/linear.h"
#include "plenum/kernels/sum.h"

#include "tests/ops/table/op_table.h"

namespace plenum::ops {
namespace {

constexpr double kFloat64Relative = 1e-12;

class SumCase final : public OpCase {
 public:
  SumCase(tensor::Device, std::int64_t count) : x_N_(random_tensor({count}, 1, 100)) {}

  std::vector<OpCall> calls(Arguments& arguments) override {
    const kernels::AddSum args = {.x_N = arguments.in(x_N_), .sum_1 = arguments.out(sum_1_)};
    return {{"add_sum", [=](const auto& stream) { kernels::add_sum(stream, args); }, 0,
             bytes_of({args.x_N, args.sum_1, args.sum_1})}};
  }
  std::vector<OpResult> results() const override {
    double expected = kBefore;
    double magnitude = kBefore;
    for (const double value : x_N_.doubles()) {
      expected += value;
      magnitude += std::abs(value);
    }
    return {
        {"sum", sum_1_.doubles(), std::vector{expected}, kFloat64Relative * magnitude / std::abs(expected)}};
  }

 private:
  static constexpr double kBefore = 0.125;
  TestTensor<float> x_N_;
  TestTensor<double> sum_1_{{1}, kBefore};
};

struct ColumnSumsOptions {
  std::int64_t T, D;
  std::array<bool, 3> is_wanted;
};

class ColumnSumsCase final : public OpCase {
 public:
  ColumnSumsCase(tensor::Device device, const ColumnSumsOptions& o)
      : device_(device), options_(o), x_T3D_(rounded(random_tensor({o.T, 3 * o.D}, 4), device)) {
    for (std::size_t part = 0; part < 3; ++part) sums_[part] = before(part);
  }

  std::size_t scratch_bytes() const override { return kernels::linear_scratch_bytes(device_); }
  std::vector<OpCall> calls(Arguments& arguments) override {
    kernels::AddColumnSums args{.x_T3D = arguments.in_compute(x_T3D_), .sum_3_D = {}};
    for (std::size_t part = 0; part < 3; ++part) {
      if (options_.is_wanted[part]) args.sum_3_D[part] = arguments.out(sums_[part]);
    }
    return {{"add_column_sums", [=](const auto& stream) { kernels::add_column_sums(stream, args); }, 0,
             bytes_of({args.x_T3D})}};
  }
  std::vector<OpResult> results() const override {
    std::vector<OpResult> results;
    const std::vector<double> x = x_T3D_.doubles();
    const auto D = static_cast<std::size_t>(options_.D);
    for (std::size_t part = 0; part < 3; ++part) {
      std::vector<double> expected = before(part).doubles();
      const bool is_changed = options_.is_wanted[part] && options_.T > 0;
      for (std::size_t i = 0; i < x.size() && is_changed; ++i) {
        if (i % (3 * D) / D == part) expected[i % D] += x[i];
      }
      results.push_back({fmt::format("sum of part {}", part), sums_[part].doubles(), expected,
                         is_changed ? kFloat32Relative : 0});
    }
    return results;
  }

 private:
  TestTensor<float> before(std::size_t part) const { return random_tensor({options_.D}, 1 + part); }

  tensor::Device device_;
  ColumnSumsOptions options_;
  TestTensor<float> x_T3D_;
  std::array<TestTensor<float>, 3> sums_;
};

OpShape column_shape(const ColumnSumsOptions& o) {
  return op_shape<ColumnSumsCase>(
      fmt::format("T={} D={} parts {:d}{:d}{:d}", o.T, o.D, o.is_wanted[0], o.is_wanted[1], o.is_wanted[2]),
      o);
}

OpShape sum_shape(std::int64_t count) {
  return op_shape<SumCase>(fmt::format("N={}", count), count);
}

}  // namespace

OpDescriptor sum_op() {
  return {.name = "add_sum",
          .functions = {"add_sum"},
          .shapes =
              [](tensor::Device) {
                std::vector<OpShape> shapes;
                for (const std::int64_t count : {0, 1, 31, 32, 33, 1023, 1025, 5000}) {
                  shapes.push_back(sum_shape(count));
                }
                return shapes;
              },
          .typical = sum_shape(4096)};
}

OpDescriptor column_sums_op() {
  return {.name = "add_column_sums",
          .functions = {"add_column_sums"},
          .shapes =
              [](tensor::Device) {
                // Every choice of parts; rows that fill no block, widths that are no multiple of eight.
                std::vector<OpShape> shapes;
                for (const auto& [rows, width] : std::initializer_list<std::pair<std::int64_t, std::int64_t>>{
                         {0, 8}, {1, 3}, {5, 16}, {131, 24}, {1000, 37}, {300, 768}, {40000, 8}}) {
                  for (unsigned parts = 0; parts < 8; ++parts) {
                    shapes.push_back(
                        column_shape({rows, width, {(parts & 1) != 0, (parts & 2) != 0, (parts & 4) != 0}}));
                  }
                }
                return shapes;
              },
          .typical = column_shape({4096, 768, {true, true, true}})};
}

}  // namespace plenum::ops
