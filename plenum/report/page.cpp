#include "plenum/report/page.h"

#include <fmt/format.h>

#include "plenum/report/html.h"
#include "plenum/report/page_parts.h"
#include "plenum/trace/palette.h"
#include "plenum/trace/svg_text.h"

namespace plenum::report {
namespace {

/// Colours of categories as every drawing of the program has them.
std::string category_style() {
  std::string css;
  for (std::size_t i = 0; i < trace::kNumCategories; ++i) {
    const auto category = static_cast<trace::Category>(i);
    css +=
        fmt::format(".{0}{{fill:{1};--key:{1}}}", trace::class_of(category), trace::style_of(category).color);
  }
  return css;
}

}  // namespace

std::string page_html(const std::string& title, const std::string& content, const PageOptions& options) {
  // Where the script runs it reloads the page itself, and keeps what is zoomed and how far it is scrolled.
  const std::string refresh =
      options.refresh_seconds > 0
          ? fmt::format("<noscript><meta http-equiv=\"refresh\" content=\"{}\"></noscript>\n",
                        options.refresh_seconds)
          : "";
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"{}>\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n{}<title>{}</title>\n"
      "<link rel=\"icon\" href=\"data:,\">\n<style>\n{}{}\n</style>\n</head>\n<body>\n{}"
      "<footer><p>Written by plenum report, {}. Training time counts while processes train; tokens are real "
      "ones, without padding.</p></footer>\n"
      "<script>\n{}</script>\n</body>\n</html>\n",
      options.refresh_seconds > 0 ? fmt::format(" data-refresh=\"{}\"", options.refresh_seconds) : "",
      refresh, escape(title), page_style(), category_style(), content, escape(options.written),
      page_script());
}

}  // namespace plenum::report
