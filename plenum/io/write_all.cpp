#include "plenum/io/write_all.h"

#include <cerrno>

#include <unistd.h>

#include "plenum/base/system_call.h"

namespace plenum::io {
namespace {

/// Calls `write` with what is left until nothing is.
template <typename Write>
void write_rest(std::string_view bytes, const std::string& path, Write write) {
  while (!bytes.empty()) {
    const ssize_t count = write(bytes);
    if (count < 0 && errno == EINTR) continue;
    base::require_call(count >= 0, "cannot write {}", path);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace

void write_all(int descriptor, std::string_view bytes, const std::string& path) {
  write_rest(bytes, path,
             [&](std::string_view rest) { return ::write(descriptor, rest.data(), rest.size()); });
}

void write_all_at(int descriptor, std::uint64_t offset, std::string_view bytes, const std::string& path) {
  const std::uint64_t end = offset + bytes.size();
  write_rest(bytes, path, [&](std::string_view rest) {
    return ::pwrite(descriptor, rest.data(), rest.size(), static_cast<off_t>(end - rest.size()));
  });
}

}  // namespace plenum::io
