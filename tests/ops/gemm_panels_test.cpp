#include "plenum/kernels/cpu/gemm_panels.h"

#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace plenum::kernels::cpu {
namespace {

struct Size {
  std::int64_t m, n;
  std::string name() const { return fmt::format("{} x {}", m, n); }
};

// What linear maps of BERT-mini and BERT-base make, and what is hard to cut.
const std::vector<Size> kSizes = {{256, 256}, {768, 256},   {1024, 256},  {256, 1024}, {600, 256},
                                  {768, 768}, {4096, 3072}, {2304, 768},  {1, 1},      {1, 5000},
                                  {5000, 1},  {0, 7},       {100000, 80}, {7, 0}};

TEST(GemmPanels, CoverTheProduct) {
  for (const Size& size : kSizes) {
    for (const std::size_t num_threads : {1U, 3U, 16U, 200U}) {
      const Panels panels = panels_of(size.m, size.n, num_threads);
      for (const auto& [pieces, total, most] : {std::tuple(panels.rows, size.m, std::int64_t{1024}),
                                                std::tuple(panels.columns, size.n, kBlockColumns)}) {
        std::int64_t end = 0;
        for (std::int64_t i = 0; i < pieces.count(); ++i) {
          EXPECT_EQ(pieces.begin(i), end) << size.name();
          EXPECT_GT(pieces.length(i), 0) << size.name();
          EXPECT_LE(pieces.piece, most + 8) << size.name();  // rounded up to a tile
          end += pieces.length(i);
        }
        EXPECT_EQ(end, total) << size.name() << " with " << num_threads << " threads";
      }
    }
  }
}

TEST(GemmPanels, KeepSixteenThreadsBusy) {
  constexpr std::int64_t kThreads = 16;
  for (const Size& size : {Size{256, 256}, Size{768, 256}, Size{1024, 256}, Size{256, 1024}, Size{600, 256},
                           Size{768, 768}, Size{2304, 768}}) {
    const std::int64_t count = panels_of(size.m, size.n, kThreads).count();
    const std::int64_t rounds = (count + kThreads - 1) / kThreads;
    EXPECT_GE(10 * count, 9 * rounds * kThreads) << size.name() << ": " << count << " panels";
  }
}

TEST(GemmPanels, AreAsLargeAsTheyMayBeForOneThread) {
  EXPECT_EQ(panels_of(1000, 700, 1).count(), 1);
}

}  // namespace
}  // namespace plenum::kernels::cpu
