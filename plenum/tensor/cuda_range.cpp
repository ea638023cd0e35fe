#include "plenum/tensor/cuda_range.h"

#include <nvtx3/nvToolsExt.h>

namespace plenum::tensor {
namespace {

/// Null where no tool was loaded into the process, which is known when NVTX is first called.
nvtxDomainHandle_t plenum_domain() {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("plenum");
  return domain;
}

}  // namespace

bool is_profiled() {
  return plenum_domain() != nullptr;
}

void CudaRange::begin(const std::string& name) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name.c_str();  // which the tool copies
  nvtxDomainRangePushEx(plenum_domain(), &attributes);
}

void CudaRange::end() noexcept {
  nvtxDomainRangePop(plenum_domain());
}

}  // namespace plenum::tensor
