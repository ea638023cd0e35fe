#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/base/progress.h"
#include "plenum/data/corpus/prepare.h"
#include "plenum/io/file.h"

#include "tests/support/temporary_directory.h"

namespace plenum::data {

/// A vocabulary in which every word of small letters is as many tokens as it has letters.
inline std::string letter_vocabulary() {
  std::string text = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n.\n,\n";
  for (char letter = 'a'; letter <= 'z'; ++letter) text += std::string(1, letter) + "\n";
  for (char letter = 'a'; letter <= 'z'; ++letter) text += "##" + std::string(1, letter) + "\n";
  return text;
}

/// Documents of random sentences: blank lines between them, some empty of tokens, some repeated.
inline std::string random_text(unsigned seed, int num_documents) {
  std::mt19937 random(seed);
  std::vector<std::string> documents;
  for (int d = 0; d < num_documents; ++d) {
    if (d > 3 && random() % 10 == 0) {
      documents.push_back(documents[random() % documents.size()]);
      continue;
    }
    std::string document;
    for (unsigned s = 0; s < 1 + random() % 9; ++s) {
      for (unsigned w = 0; w < 1 + random() % 12; ++w) {
        for (unsigned l = 0; l < 1 + random() % 7; ++l) document += static_cast<char>('a' + random() % 26);
        document += ' ';
      }
      document += ".\n";
    }
    documents.push_back(document);
  }
  std::string text;
  for (const std::string& document : documents) text += document + "\n";
  return text;
}

/// Remembers what it was told.
class RecordingProgress final : public base::Progress {
 public:
  void begin(std::string_view, std::string_view, std::uint64_t) override {}
  void advance_to(std::uint64_t) override {}
  void end() override {}
  void note(std::string_view line) override { notes.emplace_back(line); }
  void warn(std::string_view line) override { warnings.emplace_back(line); }

  std::vector<std::string> notes;
  std::vector<std::string> warnings;
};

/// Every file in a directory and its bytes.
inline std::map<std::string, std::string> contents_of(const std::string& directory) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    contents[entry.path().filename().string()] = io::read_file(entry.path().string());
  }
  return contents;
}

class PrepareTest : public testing::Test {
 protected:
  PrepareOptions options(const std::string& input, std::string_view output = "out") const {
    PrepareOptions options;
    options.inputs = {input};
    options.output = directory_ / output;
    options.vocab_path = vocab_path_;
    options.sequences.max_length = 40;
    options.threads = 2;
    options.text.block_bytes = 500;
    options.checkpoint_blocks = 3;
    return options;
  }

  PrepareResult prepare_quietly(const PrepareOptions& given) const {
    base::SilentProgress silent;
    return prepare(given, silent);
  }

  test::TemporaryDirectory directory_;
  std::string vocab_path_ = directory_.write("vocab.txt", letter_vocabulary());
};

}  // namespace plenum::data
