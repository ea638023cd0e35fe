#include "plenum/pipeline/tags.h"

namespace plenum::pipeline {

using schedule::Action;
using schedule::ActionType;

comm::Tag message_tag(const Action& send, std::uint64_t step) {
  const bool is_gradient = send.type == ActionType::SendGradient;
  return (step & 0x7FFF) << 49 | std::uint64_t{is_gradient} << 48 | std::uint64_t{send.stage.value} << 32 |
         send.micro_batch.value;
}

comm::Tag collective_tag(const Action& action, std::uint64_t step) {
  const std::uint64_t what = static_cast<std::uint64_t>(action.type) |
                             std::uint64_t{action.stage.value} << 8 |
                             std::uint64_t{action.first_layer.value} << 24 |
                             std::uint64_t{action.end_layer.value} << 40 | std::uint64_t{action.age} << 56;
  const std::uint64_t round = schedule::counts_rounds(action.type) ? action.micro_batch.value : 0;
  return what ^ (std::uint64_t{action.factor} << 48 ^ round << 16 ^ step) * 0x9E3779B97F4A7C15u;
}

}  // namespace plenum::pipeline
