#pragma once

#include <optional>
#include <string>

#include "plenum/base/check.h"
#include "plenum/base/function_ref.h"
#include "plenum/tensor/device_error.h"

namespace plenum::train {

/// Does what may fail for a reason that the user can mend, as writing does on a full disk. Returns that
/// reason, or nothing where it is done. A GPU that broke down is no such reason, although it is told the user
/// too: its DeviceError is thrown on, so that nobody tries again or goes on with what lies in its memory.
inline std::optional<std::string> mendable_failure_of(base::FunctionRef<void()> action) {
  try {
    action();
  } catch (const tensor::DeviceError&) {
    throw;
  } catch (const base::UserError& error) {
    return error.what();
  }
  return std::nullopt;
}

}  // namespace plenum::train
