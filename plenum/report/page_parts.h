#pragma once

#include <string_view>

namespace plenum::report {

/// page.css and page.js, which the build puts into the program.
std::string_view page_style();
std::string_view page_script();

}  // namespace plenum::report
