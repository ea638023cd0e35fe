#include "plenum/trace/svg_text.h"

#include <array>

#include <fmt/format.h>

#include "plenum/trace/palette.h"
#include "plenum/trace/printable.h"

namespace plenum::trace {
namespace {

constexpr std::array<std::string_view, kNumCategories> kClasses = {"fw", "bw", "ig", "wg", "rc", "cu",
                                                                   "iv", "pc", "up", "ms", "co", "ot"};

constexpr std::string_view kPageStyle =
    "text{font-family:ui-sans-serif,system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#24292f}"
    ".page{fill:#fff}.title{font-size:16px;font-weight:600}.quiet{fill:#656d76}.small{font-size:11px}.tiny{"
    "font-size:7.5px}"
    ".note{font-size:12px}.lane{fill:#f3f5f8}.grid{stroke:#d8dee4;stroke-width:1}"
    ".step{stroke:#57606a;stroke-width:1.2;stroke-dasharray:5 3}"
    ".flow{stroke:#57606a;stroke-width:.8;fill:none;opacity:.75}.head{fill:#57606a}"
    ".b{stroke:#fff;stroke-width:.8}.alt{fill-opacity:.68}"
    "text.n{fill:#14181d;text-anchor:middle;pointer-events:none}";

constexpr std::string_view kDarkStyle =
    "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}.quiet{fill:#9198a1}"
    ".lane{fill:#161b22}.grid{stroke:#2b323b}.step{stroke:#9198a1}.flow{stroke:#b1bac4}.head{fill:#b1bac4}"
    ".b{stroke:#0d1117}.alt{fill-opacity:.8}text.n{fill:#0b0f14}}";

std::string_view strokes_of(Hatch hatch) {
  switch (hatch) {
    case Hatch::Rising:
      return "M-1 1L1-1M0 6L6 0M5 7L7 5";
    case Hatch::Crossed:
      return "M0 0L6 6M0 6L6 0";
    case Hatch::Upright:
      return "M2 0V6M5 0V6";
    case Hatch::None:
      break;
  }
  return "";
}

}  // namespace

std::string escape_xml(std::string_view text) {
  std::string escaped;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string coordinate(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string_view class_of(Category category) {
  return kClasses[static_cast<std::size_t>(category)];
}

std::string svg_style() {
  std::string css(kPageStyle);
  std::string hatches;
  for (std::size_t i = 0; i < kNumCategories; ++i) {
    const CategoryStyle& style = style_of(static_cast<Category>(i));
    if (style.hatch == Hatch::None) {
      css += fmt::format(".{}{{fill:{}}}", kClasses[i], style.color);
      continue;
    }
    css += fmt::format(".{0}{{fill:url(#plenum-{0})}}", kClasses[i]);
    hatches += fmt::format(
        "<pattern id=\"plenum-{}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
        "<rect width=\"6\" height=\"6\" fill=\"{}\"/>"
        "<path d=\"{}\" stroke=\"#000\" stroke-opacity=\".28\" stroke-width=\".9\"/></pattern>\n",
        kClasses[i], style.color, strokes_of(style.hatch));
  }
  return fmt::format(
      "<style>{}{}</style>\n<defs>\n{}"
      "<marker id=\"plenum-head\" viewBox=\"0 0 6 6\" refX=\"5\" refY=\"3\" markerWidth=\"5\" "
      "markerHeight=\"5\" orient=\"auto\"><path class=\"head\" d=\"M0 0L6 3L0 6z\"/></marker>\n</defs>\n",
      css, kDarkStyle, hatches);
}

}  // namespace plenum::trace
