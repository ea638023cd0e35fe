#pragma once

#include <string>
#include <vector>

#include "plenum/data/corpus/dataset_description.h"

namespace plenum::data {

/// Whether sequences are so short on average that most of what --max-length allows is not used.
bool has_short_sequences(const DatasetDescription& description);

/// What was taken for a document in .txt files, for people: "each file is one". Empty if there are no such
/// files.
std::string document_boundary(const DatasetDescription& description);

/// What the user may not have meant, a line each, with the option that changes it: sequences far shorter than
/// they may be, many unknown tokens, nothing held out.
std::vector<std::string> warnings_about(const DatasetDescription& description);

}  // namespace plenum::data
