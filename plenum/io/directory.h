#pragma once

#include <string>
#include <vector>

namespace plenum::io {

/// Whether something has this name; a link counts as what it leads to. Throws UserError where that cannot be
/// told: no permission, links in a circle, a name that is too long.
bool path_exists(const std::string& path);

/// The names in a directory, sorted; none if nothing has its name. Throws UserError for everything else that
/// cannot be listed, a link that leads nowhere too: what cannot be read is not empty.
std::vector<std::string> names_in(const std::string& directory);

/// Makes a directory and those above it that are missing, each on the disk when this returns. Throws
/// UserError.
void make_directories(const std::string& path);

}  // namespace plenum::io
