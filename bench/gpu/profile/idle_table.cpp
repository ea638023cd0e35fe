#include "bench/gpu/profile/idle_table.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include <cxxabi.h>
#include <fmt/format.h>

namespace plenum::bench {
namespace {

constexpr std::size_t kNumPairs = 12;
constexpr std::size_t kNameWidth = 30;

/// From the end of all that ran before to the beginning of what came next.
struct Pause {
  const KernelRecord* before = nullptr;
  const KernelRecord* after = nullptr;
  std::uint64_t ns = 0;
};

std::vector<Pause> pauses_of(const std::vector<KernelRecord>& records) {
  std::vector<Pause> pauses;
  const KernelRecord* last = nullptr;
  for (const KernelRecord& record : records) {
    if (last != nullptr && record.begin_ns > last->end_ns)
      pauses.push_back({.before = last, .after = &record, .ns = record.begin_ns - last->end_ns});
    if (last == nullptr || record.end_ns > last->end_ns) last = &record;
  }
  return pauses;
}

/// A kernel's name without namespaces, template arguments and parameters.
std::string short_name(const KernelRecord& record) {
  if (record.kind == KernelRecord::Kind::Copy) return "copy";
  if (record.kind == KernelRecord::Kind::Fill) return "fill";
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(record.name.c_str(), nullptr, nullptr, nullptr), &std::free);
  std::string name = plain ? plain.get() : record.name;
  // "(anonymous namespace)" is no list of parameters.
  constexpr std::string_view kUnnamed = "(anonymous namespace)";
  for (std::size_t at = name.find(kUnnamed); at != std::string::npos; at = name.find(kUnnamed))
    name.erase(at, kUnnamed.size());
  name = name.substr(0, name.find_first_of("<("));
  const std::size_t colon = name.rfind(':');
  return name.substr(colon == std::string::npos ? 0 : colon + 1, kNameWidth);
}

struct Sum {
  std::int64_t count = 0;
  std::uint64_t ns = 0;
  std::uint64_t longest_ns = 0;

  void add(std::uint64_t pause_ns) {
    ++count;
    ns += pause_ns;
    longest_ns = std::max(longest_ns, pause_ns);
  }
};

std::string row_of(const std::string& label, const Sum& sum, std::int64_t num_steps) {
  const auto of_step = [&](double value) { return value / static_cast<double>(num_steps); };
  return fmt::format("{:<65} {:>9.1f} {:>9.3f} {:>13.1f}\n", label, of_step(static_cast<double>(sum.count)),
                     of_step(static_cast<double>(sum.ns) * 1e-6), static_cast<double>(sum.longest_ns) * 1e-3);
}

/// Sums by length: below each of these, and all that are longer.
std::string table_of_lengths(const std::vector<Pause>& pauses, std::int64_t num_steps) {
  std::map<std::uint64_t, Sum> below;
  for (const std::uint64_t us : {1, 2, 3, 5, 10, 30, 100, 1000, 1000000}) below[us * 1000] = {};
  for (const Pause& pause : pauses)
    below.upper_bound(std::min(pause.ns, below.rbegin()->first - 1))->second.add(pause.ns);
  std::string text;
  for (const auto& [limit_ns, sum] : below) {
    if (sum.count > 0) text += row_of(fmt::format("shorter than {} us", limit_ns / 1000), sum, num_steps);
  }
  return text;
}

std::string table_of_pairs(const std::vector<Pause>& pauses, std::int64_t num_steps) {
  std::map<std::string, Sum> by_pair;
  for (const Pause& pause : pauses)
    by_pair[short_name(*pause.before) + " | " + short_name(*pause.after)].add(pause.ns);
  std::vector<std::pair<std::string, Sum>> pairs(by_pair.begin(), by_pair.end());
  std::ranges::sort(pairs, std::greater(), [](const auto& pair) { return pair.second.ns; });
  if (pairs.size() > kNumPairs) pairs.resize(kNumPairs);
  std::string text;
  for (const auto& [label, sum] : pairs) text += row_of(label, sum, num_steps);
  return text;
}

}  // namespace

std::uint64_t idle_ns(const std::vector<KernelRecord>& records) {
  std::uint64_t sum = 0;
  for (const Pause& pause : pauses_of(records)) sum += pause.ns;
  return sum;
}

std::string idle_table(const std::vector<KernelRecord>& records, std::int64_t num_steps) {
  const std::vector<Pause> pauses = pauses_of(records);
  return fmt::format("{:<65} {:>9} {:>9} {:>13}\n", "nothing ran", "times", "ms", "longest, us") +
         table_of_lengths(pauses, num_steps) + table_of_pairs(pauses, num_steps);
}

}  // namespace plenum::bench
