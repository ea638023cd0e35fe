#include "plenum/model/rank_sums.h"

#include <vector>

namespace plenum::model {
namespace {

constexpr comm::Tag kSum = 1;
constexpr comm::Tag kGather = 2;

comm::Elements elements_of(const tensor::TensorView& view) {
  return {{static_cast<std::byte*>(view.raw()), view.num_bytes()}, view.dtype()};
}

}  // namespace

void sum_over_ranks(const Pass& pass, const tensor::TensorView& share) {
  if (pass.group == nullptr) return;
  pass.group->start_all_reduce(elements_of(share), kSum).wait();
}

void gather_over_ranks(const Pass& pass, const tensor::TensorView& part_PM4) {
  const comm::Elements whole = elements_of(part_PM4);
  const std::size_t each = whole.count() / pass.group->size();
  const std::vector<std::size_t> counts(pass.group->size(), each);
  pass.group->start_all_gather(whole.part(pass.group->index() * each, each), whole, counts, kGather).wait();
}

}  // namespace plenum::model
