#pragma once

#include "plenum/kernels/sum.h"

namespace plenum::kernels::cpu {

void add_sum(const AddSum& args);

}  // namespace plenum::kernels::cpu
