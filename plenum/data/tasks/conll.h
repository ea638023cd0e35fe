#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/data/tasks/task_examples.h"

namespace plenum::data {

/// A sentence of a file with a word a line.
struct ConllSentence {
  std::string place;
  std::vector<std::string_view> words;
  std::vector<std::string_view> tags;  ///< of each; none if the file has none
};

/// Which columns of such a file are read, from 0.
struct ConllColumns {
  std::size_t word = 0;
  std::size_t tag = 0;
  bool has_tags = false;
  std::size_t num_columns = 0;
};

/// The columns that options name by number, or the first for words and the last for tags. `line` is the first
/// of the file with words. Throws UserError beginning with `path` if they are not there.
ConllColumns choose_conll_columns(std::string_view line, const TaskOptions& options, Labelled labelled,
                                  const std::string& path);

/// Gives the sentences of a text: between blank lines, each a word a line with columns set apart by tabs, or
/// where there is none by spaces. Lines that begin with -DOCSTART- are passed over, and counted. Throws
/// UserError naming file and line for a line with more or fewer columns than the first.
std::size_t read_conll(std::string_view text, const std::string& path, const TaskOptions& options,
                       Labelled labelled, const std::function<void(const ConllSentence&)>& sink);

}  // namespace plenum::data
