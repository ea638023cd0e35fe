#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "plenum/control/descriptor.h"

namespace plenum::control {

/// The name of this host, for messages to people.
std::string host_name();

/// The address at which rank 0 waits. `interface` is the name of a network interface or an address of this
/// host; where it is empty: loopback if all processes are on this host, else the address that the host's name
/// stands for, or that of the default route where the name stands for loopback. Throws UserError, naming the
/// interfaces that there are.
std::string choose_address(const std::string& interface, bool is_on_one_host);

/// A socket that accepts connections to that address, at a port that the system chooses. Never waits. Throws
/// UserError.
struct Listener {
  Descriptor socket;
  std::uint16_t port = 0;
};
Listener listen_at(const std::string& address);

/// A connection to that place; not open, with errno set, if there is none within the time. Never waits once
/// it is made.
Descriptor connect_to(const std::string& address, std::uint16_t port, std::chrono::milliseconds limit);

/// Waits until the descriptor is ready for `events` of poll(). False if it is not within the time.
bool wait_ready(int descriptor, short events, std::chrono::steady_clock::time_point until);

/// Sends small messages at once.
void prefer_speed(int socket);

}  // namespace plenum::control
