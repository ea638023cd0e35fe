#pragma once

#include "plenum/base/check.h"

namespace plenum::tensor {

/// A GPU broke down, or was taken away, in the middle of its work. Nothing that lies in its memory can be
/// relied on, and this process cannot use it again.
class DeviceError : public base::UserError {
 public:
  using base::UserError::UserError;
};

}  // namespace plenum::tensor
