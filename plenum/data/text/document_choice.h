#pragma once

#include <optional>
#include <vector>

#include "plenum/data/text/source_files.h"
#include "plenum/data/text/text_reader.h"

namespace plenum::data {

/// What .txt files look like, from the beginnings of some of them. A block is lines up to a blank line.
struct TextShape {
  std::uint64_t num_files = 0;   ///< looked at
  std::uint64_t file_bytes = 0;  ///< of them, unpacked; estimated for those not read to their ends
  std::uint64_t text_bytes = 0;  ///< in lines that are not blank
  std::uint64_t num_lines = 0;   ///< not blank
  std::uint64_t num_blocks = 0;
};

/// Looks at the beginnings of at most 64 of the .txt files, spread over the list. Throws UserError for what
/// cannot be read.
TextShape sample_text(const std::vector<SourceFile>& files);

/// How the documents of .txt files are told apart, by the look of the text. `file`: several files, each small
/// enough for one document, whose blocks are paragraphs. `blank-line`: the convention of BERT's own data in
/// one file or large ones. `line`: one file or large ones without blank lines, but with long lines. Never
/// Auto. The same for the same text, so that a run that was interrupted resumes.
DocumentRule choose_document_rule(const TextShape& shape);

}  // namespace plenum::data
