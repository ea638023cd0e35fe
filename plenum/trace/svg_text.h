#pragma once

#include <string>
#include <string_view>

#include "plenum/trace/timeline.h"

namespace plenum::trace {

/// Writes text so that it stands for itself in XML: printable(), and the five marks as entities.
std::string escape_xml(std::string_view text);

/// A coordinate with at most two decimals: "12.5".
std::string coordinate(double value);

/// The class that a category's blocks carry in svg_style().
std::string_view class_of(Category category);

/// A style element and the definitions it refers to (hatches, arrow heads). Colours of page, text and lines
/// follow the reader's light or dark scheme.
std::string svg_style();

}  // namespace plenum::trace
