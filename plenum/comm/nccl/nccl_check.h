#pragma once

#include <nccl.h>

namespace plenum::comm::nccl {

/// Throws UserError, with what NCCL says, if a call failed. `what` says what could not be done.
void check_nccl(ncclResult_t result, const char* what);

}  // namespace plenum::comm::nccl
