#include "plenum/kernels/pool_rows.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/pool_rows.h"
#include "plenum/kernels/cuda/rows/pool_rows.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {
namespace {

/// Every group has rows, one group's behind the other's, and behind all of them come those of none.
void check_groups(std::span<const std::int32_t> group_R, std::int64_t num_groups) {
  std::int32_t last = -1;
  bool has_ended = false;
  for (const std::int32_t group : group_R) {
    has_ended = has_ended || group == -1;
    base::check(has_ended ? group == -1 : group == last || group == last + 1,
                "groups must be 0, 1, … of neighbouring rows: {} behind {}", group, last);
    if (!has_ended) last = group;
  }
  base::check(last + 1 == num_groups, "rows of {} groups were given, for {}", last + 1, num_groups);
}

}  // namespace

void pool_rows(const tensor::Stream& stream, const PoolRows& args) {
  base::check(args.x_RD.shape().num_dims() == 2 && args.y_SD.shape().num_dims() == 2,
              "rows of what shape? {} and {}", to_string(args.x_RD.shape()), to_string(args.y_SD.shape()));
  check_argument("x_RD", args.x_RD, stream.precision().of(tensor::Role::Activation), args.x_RD.shape());
  check_argument("group_R", args.group_R, tensor::DType::Int32, {args.x_RD.size(0)});
  check_argument("y_SD", args.y_SD, {args.y_SD.size(0), args.x_RD.size(1)});
  // The host does not see what lies on a GPU.
  if (stream.device() == tensor::Device::Cpu)
    check_groups(args.group_R.span<std::int32_t>(), args.y_SD.size(0));
  dispatch<&cpu::pool_rows, &cuda::pool_rows>(stream, args);
}

}  // namespace plenum::kernels
