#pragma once

#include <string>

#include "plenum/base/function_ref.h"
#include "plenum/control/credentials.h"
#include "plenum/control/descriptor.h"
#include "plenum/control/message.h"

namespace plenum::control {

/// An authenticated connection between a rank and rank 0, which never waits.
class Connection {
 public:
  /// Takes over the socket; the keys are those of the frames that this end sends and receives.
  Connection(Descriptor socket, const Key& sending, const Key& receiving);

  int descriptor() const { return socket_.get(); }

  /// Puts a message behind those that wait to be sent.
  void queue(const Message& message);
  /// Sends what the system takes. False once the connection is broken.
  bool flush();
  bool has_unsent() const { return !unsent_.empty(); }

  /// Calls `take` with each message that has come. False once nothing more can come: the other end closed or
  /// broke the connection, or sent what is no message of its own.
  bool receive(base::FunctionRef<void(Message&&)> take);

  /// Lets the other end know that nothing more will be sent.
  void end_sending();

 private:
  bool take_frames(base::FunctionRef<void(Message&&)> take);

  Descriptor socket_;
  FrameCipher sending_;
  FrameCipher receiving_;
  std::string unsent_;
  std::string received_;  ///< not more than one frame and what the system gives at a time
  std::string body_;
};

}  // namespace plenum::control
