#include "plenum/train/agreement.h"

#include <array>
#include <span>

namespace plenum::train {

bool Agreement::is_wished_by_any(bool wish) {
  std::array<double, 1> num_wishes{wish ? 1.0 : 0.0};
  constexpr comm::Tag kTag = 0;
  processes_.start_all_reduce(comm::elements_of(std::span<double>(num_wishes)), kTag).wait();
  return num_wishes.front() > 0;
}

}  // namespace plenum::train
