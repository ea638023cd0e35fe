#include "plenum/describe/norm_elements.h"

#include <algorithm>

namespace plenum::describe {

NormElements::NormElements(const ParameterTable& table) {
  const std::vector<Parameter>& parameters = table.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    if (parameter.kind != ParameterKind::NormWeight && parameter.kind != ParameterKind::NormBias) continue;
    const std::int64_t end = i + 1 < parameters.size() ? parameters[i + 1].begin : table.num_elements();
    if (runs_.empty() || runs_.back().elements.end != parameter.begin)
      runs_.push_back({.elements = {parameter.begin, parameter.begin}, .begin = count_});
    runs_.back().elements.end = end;
    count_ += end - parameter.begin;
  }
}

std::vector<NormElements::Run> NormElements::within(const ElementRange& range) const {
  std::vector<Run> found;
  for (const Run& run : runs_) {
    const std::int64_t begin = std::max(run.elements.begin, range.begin);
    const std::int64_t end = std::min(run.elements.end, range.end);
    if (begin < end)
      found.push_back({.elements = {begin, end}, .begin = run.begin + begin - run.elements.begin});
  }
  return found;
}

std::int64_t NormElements::count_within(const ElementRange& range) const {
  std::int64_t count = 0;
  for (const Run& run : within(range)) count += run.elements.end - run.elements.begin;
  return count;
}

}  // namespace plenum::describe
