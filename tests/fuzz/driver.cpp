// A small mutational fuzzer for compilers without libFuzzer: the short run of `make test`. Deterministic for
// a seed.
//   FUZZER SEED_DIRECTORY RUNS [SEED]
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plenum/base/philox.h"
#include "plenum/base/units.h"

#include "tests/fuzz/fuzz.h"

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kLongestInput = 8192;
constexpr unsigned kSecondsPerInput = 20;

/// The input in work, in memory that the parent process sees too.
struct CurrentInput {
  std::size_t size = 0;
  std::uint8_t bytes[kLongestInput] = {};
};

/// A stream of random numbers: the n-th draw of this run.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed, plenum::base::Purpose::Order) {}
  std::size_t below(std::size_t bound) { return plenum::base::to_range(random_(draws_++), bound); }

 private:
  plenum::base::RandomFunction random_;
  std::uint64_t draws_ = 0;
};

std::vector<Bytes> read_seeds(const char* directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> seeds = {{}};
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return seeds;
}

void mutate(Bytes& bytes, const std::vector<Bytes>& seeds, Dice& dice) {
  static constexpr std::uint8_t kTelling[] = {0,    1,   0x7f, 0x80, 0xff, 0xc3, '\n', '"',
                                              '\\', '-', '9',  ' ',  '[',  '{',  ','};
  const std::size_t place = dice.below(bytes.size() + 1);
  const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(place);
  switch (dice.below(7)) {
    case 0:
      if (place < bytes.size()) *at ^= static_cast<std::uint8_t>(1u << dice.below(8));
      break;
    case 1:
      if (place < bytes.size()) *at = kTelling[dice.below(std::size(kTelling))];
      break;
    case 2:
      bytes.insert(at, kTelling[dice.below(std::size(kTelling))]);
      break;
    case 3:
      bytes.erase(at, at + static_cast<std::ptrdiff_t>(std::min(dice.below(16), bytes.size() - place)));
      break;
    case 4: {
      const Bytes block(at, at + static_cast<std::ptrdiff_t>(std::min(dice.below(32), bytes.size() - place)));
      const std::size_t target = dice.below(bytes.size() + 1);
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(target), block.begin(), block.end());
      break;
    }
    case 5: {
      const Bytes& other = seeds[dice.below(seeds.size())];
      const std::size_t from = dice.below(other.size() + 1);
      bytes.resize(place);
      bytes.insert(bytes.end(), other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
      break;
    }
    default:
      bytes.resize(place);
  }
  if (bytes.size() > kLongestInput) bytes.resize(kLongestInput);
}

void run(const Bytes& bytes, CurrentInput& current) {
  current.size = std::min(bytes.size(), kLongestInput);
  std::copy_n(bytes.begin(), current.size, current.bytes);
  ::alarm(kSecondsPerInput);
  LLVMFuzzerTestOneInput(current.bytes, current.size);
}

/// What the child process does: every seed as it is, then `runs` mutated ones.
int fuzz(const std::vector<Bytes>& seeds, std::int64_t runs, Dice dice, CurrentInput& current) {
  try {
    for (const Bytes& seed : seeds) run(seed, current);
    for (std::int64_t i = 0; i < runs; ++i) {
      Bytes bytes = seeds[dice.below(seeds.size())];
      const std::size_t mutations = 1 + dice.below(8);
      for (std::size_t m = 0; m < mutations; ++m) mutate(bytes, seeds, dice);
      run(bytes, current);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz: not a UserError: %s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s SEED_DIRECTORY RUNS [SEED]\n", argv[0]);
    return 2;
  }
  const std::vector<Bytes> seeds = read_seeds(argv[1]);
  const std::int64_t runs = plenum::base::parse_integer(argv[2], "runs");
  const Dice dice(argc > 3 ? static_cast<std::uint64_t>(plenum::base::parse_integer(argv[3], "seed")) : 1);
  void* shared =
      ::mmap(nullptr, sizeof(CurrentInput), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CurrentInput& current = *new (shared) CurrentInput;

  // The parser runs in a child: whatever ends it (a sanitizer, a signal, a hang), the parent still has the
  // input.
  const pid_t child = ::fork();
  if (child == 0) return fuzz(seeds, runs, dice, current);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  std::ofstream file("fuzz-finding.bin", std::ios::binary);
  file.write(reinterpret_cast<const char*>(current.bytes), static_cast<std::streamsize>(current.size));
  std::fprintf(stderr,
               "fuzz: the parser ended with status 0x%x; its input is in fuzz-finding.bin (%zu bytes)\n",
               status, current.size);
  return 1;
}
