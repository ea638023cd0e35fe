// Trains a vocabulary on a text file and prints it: bench_train_vocabulary FILE SIZE MIN_FREQUENCY
// [ORDER_FILE]. Times go to standard error as one JSON line. bench/vocabulary_peer.py runs it beside Hugging
// Face tokenizers.
#include <chrono>
#include <fstream>

#include <fmt/format.h>

#include "plenum/base/units.h"
#include "plenum/data/tokenizer/vocabulary_trainer.h"
#include "plenum/io/file.h"

int main(int argc, char** argv) {
  namespace data = plenum::data;
  if (argc < 4) {
    fmt::print(stderr, "usage: bench_train_vocabulary FILE SIZE MIN_FREQUENCY [ORDER_FILE]\n");
    return 2;
  }
  data::TrainVocabularyOptions options;
  options.vocabulary_size = plenum::base::parse_integer(argv[2], "SIZE");
  options.min_frequency = plenum::base::parse_integer(argv[3], "MIN_FREQUENCY");
  if (argc > 4) {
    std::ifstream file(argv[4]);
    for (std::string line; std::getline(file, line);) options.continuing_order.push_back(line);
  }
  const std::string text = plenum::io::read_file(argv[1]);
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [begin] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  data::WordCounter counter{data::NormalizerRules{}};
  counter.add(text);
  const double counted = seconds();
  plenum::base::SilentProgress progress;
  const data::Vocabulary vocabulary = data::train_vocabulary(counter, options, progress);
  fmt::print(stderr, "{{\"words\": {}, \"count_seconds\": {:.4f}, \"seconds\": {:.4f}}}\n",
             counter.num_words(), counted, seconds());
  for (const std::string& token : vocabulary.tokens()) fmt::print("{}\n", token);
  return 0;
}
