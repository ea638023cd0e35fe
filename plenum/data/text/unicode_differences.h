#pragma once

#include <cstdint>
#include <span>

namespace plenum::data {

/// Code points from `first` to `last`, both included.
struct CodePointRange {
  char32_t first;
  char32_t last;
};

/// One code point and the `size` code points (or the one number) it maps to.
struct CodePointMapping {
  char32_t code_point;
  std::uint32_t size;
  char32_t target[4];
};

/// Where Hugging Face `tokenizers` and the Unicode 15.0 data of utf8proc disagree; each table is sorted.
struct UnicodeDifferences {
  std::span<const CodePointRange> unassigned;   ///< no character in Unicode 15.0: the library is not asked
  std::span<const CodePointRange> removed;      ///< dropped as control character: the other way round
  std::span<const CodePointRange> punctuation;  ///< punctuation: the other way round
  std::span<const CodePointRange> nonspacing;   ///< nonspacing mark: the other way round
  std::span<const CodePointMapping> combining;  ///< another canonical combining class
  std::span<const CodePointMapping> decomposition;  ///< another canonical decomposition
  std::span<const CodePointMapping> lowercase;      ///< another lower case
};

/// The tables of unicode_differences.cpp, made by tools/make_unicode_differences.py.
const UnicodeDifferences& unicode_differences();

}  // namespace plenum::data
