#include "plenum/control/rendezvous_file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "plenum/control/descriptor.h"
#include "plenum/io/file.h"

namespace plenum::control {
namespace {

constexpr const char* kFormat = "plenum-control";
constexpr int kVersion = 1;
constexpr std::size_t kMostFileBytes = 4096;

/// The text that a key of an object has; empty where it has none.
std::string text_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Up to one byte more than the file may have; none with errno set.
std::optional<std::string> read_bounded(int descriptor) {
  std::string text(kMostFileBytes + 1, '\0');
  std::size_t num_read = 0;
  while (num_read < text.size()) {
    const ssize_t count = ::read(descriptor, text.data() + num_read, text.size() - num_read);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    num_read += static_cast<std::size_t>(count);
  }
  text.resize(num_read);
  return text;
}

}  // namespace

std::string rendezvous_path(const std::string& run_directory) {
  return run_directory + "/control.json";
}

std::string rendezvous_text(const Rendezvous& rendezvous) {
  nlohmann::ordered_json json = {{"format", kFormat},
                                 {"version", kVersion},
                                 {"address", rendezvous.address},
                                 {"port", rendezvous.port},
                                 {"run", to_hex(as_bytes(rendezvous.run))}};
  if (!rendezvous.secret.empty()) json["secret"] = rendezvous.secret;
  return json.dump(1) + "\n";
}

std::optional<Rendezvous> parse_rendezvous(std::string_view text) {
  if (text.size() > kMostFileBytes) return std::nullopt;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || text_at(json, "format") != kFormat) return std::nullopt;
  const auto version = json.find("version");
  const auto port = json.find("port");
  if (version == json.end() || *version != kVersion) return std::nullopt;
  if (port == json.end() || !port->is_number_unsigned() || *port == 0 || *port > 65535) return std::nullopt;
  Rendezvous rendezvous{.address = text_at(json, "address"),
                        .port = port->get<std::uint16_t>(),
                        .run = {},
                        .secret = text_at(json, "secret")};
  if (!from_hex(text_at(json, "run"), rendezvous.run.data(), rendezvous.run.size())) return std::nullopt;
  if (rendezvous.address.empty()) return std::nullopt;
  return rendezvous;
}

PublishedRendezvous::PublishedRendezvous(const std::string& run_directory, const Rendezvous& rendezvous)
    : path_(rendezvous_path(run_directory)), text_(rendezvous_text(rendezvous)) {
  io::AtomicFile file(path_, io::Readers::Owner);
  file.write(text_);
  file.commit();
}

PublishedRendezvous::~PublishedRendezvous() {
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.is_open() && read_bounded(file.get()) == text_) ::unlink(path_.c_str());
}

FoundRendezvous find_rendezvous(const std::string& run_directory) {
  // On network file systems a node remembers that a file is not there; opening the directory makes it look.
  Descriptor(::open(run_directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)).close();
  const std::string path = rendezvous_path(run_directory);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open() && errno == ENOENT)
    return {.problem = fmt::format("there is no {}; the run directory must be on a file system that all "
                                   "nodes share, and rank 0 must have been started",
                                   path)};
  struct stat status {};
  std::optional<std::string> text;
  if (file.is_open() && ::fstat(file.get(), &status) == 0) text = read_bounded(file.get());
  if (!text) return {.problem = fmt::format("cannot read {}: {}", path, std::strerror(errno))};
  std::optional<Rendezvous> rendezvous = parse_rendezvous(*text);
  if (!rendezvous) return {.problem = fmt::format("{} is damaged, or of another version of Plenum", path)};
  if (!rendezvous->secret.empty() && status.st_uid != ::geteuid())
    return {.problem = fmt::format("{} belongs to another user, so its secret is not believed", path)};
  return {.rendezvous = std::move(rendezvous)};
}

}  // namespace plenum::control
