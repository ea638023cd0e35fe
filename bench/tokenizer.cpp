// Encodes a text file line by line on one thread and prints one JSON line: bench_tokenizer VOCAB FILE
// [--cased]. bench/tokenizer_peer.py runs it beside Hugging Face tokenizers.
#include "plenum/data/tokenizer/tokenizer.h"

#include <ctime>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "plenum/io/file.h"

namespace {

/// Of this thread: what other programs on the machine do does not count.
double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: bench_tokenizer VOCAB FILE [--cased]\n");
    return 2;
  }
  const bool cased = argc > 3 && std::string_view(argv[3]) == "--cased";
  const double begin = cpu_seconds();
  const auto tokenizer =
      plenum::data::Tokenizer::load(argv[1], {.strip_accents = std::nullopt, .lowercase = !cased});
  const double load_seconds = cpu_seconds() - begin;
  const std::string text = plenum::io::read_file(argv[2]);

  constexpr int kRounds = 5;
  double best_seconds = 0;
  std::size_t num_ids = 0;
  std::vector<plenum::data::TokenId> ids;
  for (int round = 0; round < kRounds; ++round) {
    const double start = cpu_seconds();
    plenum::data::Encoder encoder(tokenizer);  // made anew: an empty cache
    num_ids = 0;
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      ids.clear();
      encoder.encode(rest.substr(0, end), ids);
      num_ids += ids.size();
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    const double seconds = cpu_seconds() - start;
    if (round == 0 || seconds < best_seconds) best_seconds = seconds;
  }
  fmt::print("{{\"bytes\": {}, \"ids\": {}, \"seconds\": {:.6f}, \"load_seconds\": {:.6f}}}\n", text.size(),
             num_ids, best_seconds, load_seconds);
  return 0;
}
