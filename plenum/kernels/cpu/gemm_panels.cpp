#include "plenum/kernels/cpu/gemm_panels.h"

#include "plenum/kernels/cpu/gemm_tile.h"

namespace plenum::kernels::cpu {
namespace {

constexpr std::int64_t kMostRows = 1024;
constexpr std::int64_t kFewestRows = 32;
constexpr std::int64_t kMostPanelsPerThread = 8;

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// How long the busiest thread works, in quarters of a multiplication per k. A panel multiplies each of its
/// elements, and reads and packs its rows of A and columns of B, an element of which takes as long as 24
/// multiplications: small panels cost more. Threads do not end at the same time, for which a quarter of a
/// panel is added: a few panels per thread are better than one.
std::int64_t cost_of(const Panels& panels, std::int64_t num_threads) {
  constexpr std::int64_t kPacking = 24;
  const std::int64_t rows = panels.rows.piece;
  const std::int64_t columns = panels.columns.piece;
  const std::int64_t rounds = divide_up(panels.count(), num_threads);
  return (4 * rounds + 1) * (rows * columns + kPacking * (rows + columns));
}

}  // namespace

Panels panels_of(std::int64_t m, std::int64_t n, std::size_t num_threads) {
  const auto threads = static_cast<std::int64_t>(num_threads);
  Panels best = {.rows = Pieces(m, kMostRows, kTileRows), .columns = Pieces(n, kBlockColumns, kTileColumns)};
  if (num_threads == 1 || best.count() == 0) return best;
  std::int64_t least_cost = cost_of(best, threads);
  for (std::int64_t r = best.rows.count(); r <= divide_up(m, kFewestRows); ++r) {
    const Pieces rows(m, divide_up(m, r), kTileRows);
    for (std::int64_t c = divide_up(n, kBlockColumns); c <= divide_up(n, kTileColumns); ++c) {
      const Panels panels = {.rows = rows, .columns = Pieces(n, divide_up(n, c), kTileColumns)};
      if (panels.count() > kMostPanelsPerThread * threads) break;
      const std::int64_t cost = cost_of(panels, threads);
      if (cost >= least_cost) continue;
      least_cost = cost;
      best = panels;
    }
  }
  return best;
}

}  // namespace plenum::kernels::cpu
