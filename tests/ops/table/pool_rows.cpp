#include "plenum/kernels/pool_rows.h"

#include <fmt/format.h>

#include "tests/ops/table/op_table.h"
#include "tests/reference/pool_rows.h"

namespace plenum::ops {
namespace {

struct PoolRowsOptions {
  std::int64_t D;
  std::vector<std::int32_t> lengths;  ///< rows of each group
  std::int64_t num_others = 0;        ///< rows behind them, of no group
  bool has_unit_length = false;

  std::int64_t S() const { return static_cast<std::int64_t>(lengths.size()); }
};

TestTensor<std::int32_t> groups_of(const PoolRowsOptions& o) {
  std::vector<std::int32_t> groups;
  for (std::size_t s = 0; s < o.lengths.size(); ++s) {
    groups.insert(groups.end(), static_cast<std::size_t>(o.lengths[s]), static_cast<std::int32_t>(s));
  }
  groups.insert(groups.end(), static_cast<std::size_t>(o.num_others), -1);
  const auto count = static_cast<std::int64_t>(groups.size());
  return {{count}, std::move(groups)};
}

class PoolRowsCase final : public OpCase {
 public:
  PoolRowsCase(tensor::Device device, const PoolRowsOptions& o)
      : options_(o),
        group_R_(groups_of(o)),
        x_RD_(rounded(random_tensor({group_R_.shape()[0], o.D}, 1), device)),
        y_SD_({o.S(), o.D}, NAN) {}

  std::vector<OpCall> calls(Arguments& arguments) override {
    const kernels::PoolRows args = {
        .x_RD = arguments.in_compute(x_RD_),
        .group_R = arguments.in(group_R_),
        .unit_length = options_.has_unit_length ? kernels::UnitLength::Yes : kernels::UnitLength::No,
        .y_SD = arguments.out(y_SD_)};
    return {{"pool_rows", [=](const auto& stream) { kernels::pool_rows(stream, args); }, 0,
             bytes_of({args.x_RD, args.group_R, args.y_SD})}};
  }

  std::vector<OpResult> results() const override {
    const auto width = static_cast<std::size_t>(options_.D);
    std::vector<double> expected = reference::pool_rows(x_RD_.doubles(), group_R_.values(), width);
    if (options_.has_unit_length) reference::divide_by_length(expected, width);
    return {{"y", y_SD_.doubles(), expected, kFloat32Relative}};
  }

 private:
  PoolRowsOptions options_;
  TestTensor<std::int32_t> group_R_;
  TestTensor<float> x_RD_, y_SD_;
};

OpShape pool_shape(const PoolRowsOptions& o) {
  return op_shape<PoolRowsCase>(fmt::format("S={} D={} others={}{}", o.S(), o.D, o.num_others,
                                            o.has_unit_length ? " of unit length" : ""),
                                o);
}

}  // namespace

OpDescriptor pool_rows_op() {
  return {.name = "pool_rows",
          .functions = {"pool_rows"},
          .shapes =
              [](tensor::Device) {
                std::vector<OpShape> shapes;
                for (const bool has_unit_length : {false, true}) {
                  for (const PoolRowsOptions& o : std::initializer_list<PoolRowsOptions>{
                           {.D = 1, .lengths = {1}},
                           {.D = 8, .lengths = {}, .num_others = 3},
                           {.D = 7, .lengths = {3, 1, 2}},
                           {.D = 19, .lengths = {1, 1, 1, 1, 1}, .num_others = 123},
                           {.D = 32, .lengths = {40, 1, 500, 7}, .num_others = 1},
                           {.D = 1032, .lengths = {5, 130, 1}},
                           {.D = 4096, .lengths = {2, 9}}}) {
                    PoolRowsOptions options = o;
                    options.has_unit_length = has_unit_length;
                    shapes.push_back(pool_shape(options));
                  }
                }
                return shapes;
              },
          .typical = pool_shape({.D = 768, .lengths = std::vector<std::int32_t>(128, 32)})};
}

}  // namespace plenum::ops
