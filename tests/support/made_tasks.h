#pragma once

#include <string>
#include <vector>

#include "plenum/describe/task.h"

namespace plenum::test {

/// A task that a small model learns in seconds: files of made sentences of a few words.
struct MadeTask {
  describe::TaskKind kind = describe::TaskKind::Classification;
  std::string extension;  ///< of its files; all tasks can have .jsonl
  std::string metric;     ///< that its best checkpoint has
};

/// One of each kind.
std::vector<MadeTask> made_tasks();

/// The text of a file with so many examples, which differ by the seed.
std::string made_examples(const MadeTask& task, unsigned seed, int num_examples);

/// The same without labels, as far as the format knows that.
std::string without_labels(const MadeTask& task, unsigned seed, int num_examples);

/// The words of all tasks, as a vocab.txt.
std::string made_vocabulary();

}  // namespace plenum::test
