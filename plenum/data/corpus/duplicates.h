#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace plenum::data {

/// Counts the documents that repeat an earlier one: the number of 64-bit hashes in the file at `path` less
/// the number of different ones. Bounded memory: the hashes are first grouped by their leading bits in a
/// temporary file beside it; then `num_threads` threads sort groups.
std::uint64_t count_duplicates(const std::string& path, std::size_t num_threads);

}  // namespace plenum::data
