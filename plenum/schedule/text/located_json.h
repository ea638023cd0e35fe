#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace plenum::schedule {

/// A JSON object that knows on which line its keys stand, and those of the objects in its lists.
struct LocatedJson {
  using Lines = std::map<std::string, std::size_t, std::less<>>;

  nlohmann::json value;
  Lines lines;                    ///< of the keys of the object itself
  std::vector<Lines> item_lines;  ///< of the keys of the objects two levels below, in order
};

/// Parses a JSON object. Throws UserError with `source` and line if it is not valid, has a key twice, or is
/// nested deeper than an object's lists of objects of lists.
LocatedJson parse_located_json(std::string_view text, std::string_view source);

}  // namespace plenum::schedule
