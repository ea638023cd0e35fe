#include "plenum/base/check.h"

namespace plenum::base {

void throw_internal_error(const Condition& condition, const std::string& message) {
  throw InternalError(fmt::format("{}:{}: {}", condition.file(), condition.line(), message));
}

}  // namespace plenum::base
