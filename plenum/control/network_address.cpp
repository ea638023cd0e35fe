#include "plenum/control/network_address.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "plenum/base/check.h"
#include "plenum/base/system_call.h"

namespace plenum::control {
namespace {

using Clock = std::chrono::steady_clock;

/// An address with a port, as the system wants it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

/// None where `text` is no address.
std::optional<SocketAddress> parse_address(const std::string& text, std::uint16_t port) {
  SocketAddress address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  if (::inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.size = sizeof *v4;
    return address;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.size = sizeof *v6;
    return address;
  }
  return std::nullopt;
}

/// The text of an address; empty for kinds that are not for this: other families, and those that mean
/// something only together with an interface.
std::string address_text(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  } else if (address->sa_family == AF_INET6) {
    const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    if (!IN6_IS_ADDR_LINKLOCAL(&v6)) ::inet_ntop(AF_INET6, &v6, text, sizeof text);
  }
  return text;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

/// Calls `see` with the name and the address of each interface that is up, IPv4 before IPv6.
template <typename See>
void for_each_interface(See see) {
  ifaddrs* first = nullptr;
  base::require_call(::getifaddrs(&first) == 0, "cannot list the network interfaces");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, &::freeifaddrs);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != family) continue;
      const std::string address = address_text(entry->ifa_addr);
      if (!address.empty()) see(std::string(entry->ifa_name), address);
    }
  }
}

std::string address_of_interface(const std::string& interface) {
  std::string found;
  std::set<std::string> names;
  for_each_interface([&](const std::string& name, const std::string& address) {
    names.insert(name);
    if (found.empty() && (name == interface || address == interface)) found = address;
  });
  base::require(!found.empty(),
                "this host has no network interface or address called {}; it has the interfaces {}",
                interface, fmt::join(names, ", "));
  return found;
}

bool is_address_of_this_host(const std::string& wanted) {
  bool is_here = false;
  for_each_interface([&](const std::string&, const std::string& address) { is_here |= address == wanted; });
  return is_here;
}

/// What the host's name stands for: an address that other hosts may know, too. Empty where it has none.
std::string address_of_host_name() {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (::getaddrinfo(host_name().c_str(), nullptr, &hints, &first) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(first, &::freeaddrinfo);
  for (const addrinfo* entry = first; entry != nullptr; entry = entry->ai_next) {
    std::string address = address_text(entry->ai_addr);
    if (!address.empty() && !is_loopback(address) && is_address_of_this_host(address)) return address;
  }
  return {};
}

/// The address by which this host would send to far ones. Nothing is sent. Empty where there is no route.
std::string address_of_default_route() {
  for (const char* far : {"192.0.2.1", "2001:db8::1"}) {  // addresses kept for documentation
    const std::optional<SocketAddress> target = parse_address(far, 9);
    const Descriptor probe(::socket(target->family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!probe.is_open() || ::connect(probe.get(), target->get(), target->size) != 0) continue;
    SocketAddress own;
    own.size = sizeof own.storage;
    if (::getsockname(probe.get(), own.get(), &own.size) == 0) return address_text(own.get());
  }
  return {};
}

}  // namespace

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "unnamed host";
  return name;
}

std::string choose_address(const std::string& interface, bool is_on_one_host) {
  if (!interface.empty()) return address_of_interface(interface);
  if (is_on_one_host) return "127.0.0.1";
  std::string address = address_of_host_name();
  if (address.empty()) address = address_of_default_route();
  base::require(
      !address.empty(),
      "found no address of this host that other hosts could reach: its name, {}, stands for none and "
      "there is no default route; name a network interface",
      host_name());
  return address;
}

Listener listen_at(const std::string& address) {
  std::optional<SocketAddress> place = parse_address(address, 0);
  base::require(place.has_value(), "not an address: {}", address);
  Listener listener;
  listener.socket = Descriptor(::socket(place->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  base::require_call(listener.socket.is_open(), "cannot open a socket");
  base::require_call(::bind(listener.socket.get(), place->get(), place->size) == 0 &&
                         ::listen(listener.socket.get(), SOMAXCONN) == 0,
                     "cannot listen at {}", address);
  SocketAddress own;
  own.size = sizeof own.storage;
  base::require_call(::getsockname(listener.socket.get(), own.get(), &own.size) == 0, "cannot listen at {}",
                     address);
  listener.port = ntohs(own.family() == AF_INET ? reinterpret_cast<sockaddr_in*>(&own.storage)->sin_port
                                                : reinterpret_cast<sockaddr_in6*>(&own.storage)->sin6_port);
  return listener;
}

Descriptor connect_to(const std::string& address, std::uint16_t port, std::chrono::milliseconds limit) {
  const std::optional<SocketAddress> place = parse_address(address, port);
  errno = EINVAL;
  if (!place) return {};
  Descriptor socket(::socket(place->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return {};
  if (::connect(socket.get(), place->get(), place->size) == 0) return socket;
  if (errno != EINPROGRESS) return {};
  int error = ETIMEDOUT;
  socklen_t size = sizeof error;
  if (wait_ready(socket.get(), POLLOUT, Clock::now() + limit))
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0) return socket;
  socket.close();
  errno = error;
  return {};
}

bool wait_ready(int descriptor, short events, Clock::time_point until) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    pollfd waiting{descriptor, events, 0};
    const int count = ::poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (count > 0) return true;
    if (count == 0 && Clock::now() >= until) return false;
    if (count < 0 && errno != EINTR) return false;
  }
}

void prefer_speed(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace plenum::control
