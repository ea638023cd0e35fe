#include "plenum/comm/nccl/nccl_check.h"

#include "plenum/base/check.h"

namespace plenum::comm::nccl {

void check_nccl(ncclResult_t result, const char* what) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  base::fail("NCCL cannot {}: {} ({}); NCCL_DEBUG=WARN makes it say more", what, ::ncclGetErrorString(result),
             ::ncclGetLastError(nullptr));
}

}  // namespace plenum::comm::nccl
