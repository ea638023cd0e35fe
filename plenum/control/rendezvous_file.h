#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plenum/control/credentials.h"

namespace plenum::control {

/// Where rank 0 of a run waits for the others, and what they need to be let in: the file `control.json` of
/// the run directory, there for as long as not all have come.
struct Rendezvous {
  std::string address;  ///< an IPv4 or IPv6 address as text
  std::uint16_t port = 0;
  RunId run{};
  std::string secret;  ///< empty where the processes have it from their environment

  friend bool operator==(const Rendezvous&, const Rendezvous&) = default;
};

std::string rendezvous_path(const std::string& run_directory);

std::string rendezvous_text(const Rendezvous& rendezvous);
/// None for anything that rendezvous_text() does not give.
std::optional<Rendezvous> parse_rendezvous(std::string_view text);

/// Writes the file for the eyes of its owner alone; it goes when this goes out of scope, unless another has
/// taken its place. Throws UserError.
class PublishedRendezvous {
 public:
  PublishedRendezvous(const std::string& run_directory, const Rendezvous& rendezvous);
  ~PublishedRendezvous();
  PublishedRendezvous(const PublishedRendezvous&) = delete;
  PublishedRendezvous& operator=(const PublishedRendezvous&) = delete;

 private:
  std::string path_;
  std::string text_;
};

/// What a rank that looks for the file finds.
struct FoundRendezvous {
  std::optional<Rendezvous> rendezvous = {};
  std::string problem = {};  ///< why there is none
};
/// A secret in a file that belongs to another user is not believed: whoever may write to the directory could
/// stand for rank 0 by it.
FoundRendezvous find_rendezvous(const std::string& run_directory);

}  // namespace plenum::control
