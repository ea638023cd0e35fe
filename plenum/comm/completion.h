#pragma once

#include <memory>
#include <utility>

namespace plenum::comm {

/// Something that was started and is not yet known to be done. Each engine has its own.
class Operation {
 public:
  virtual ~Operation() = default;

  /// Blocks until it is done. Throws if it failed or the communicator was aborted; either way nobody touches
  /// its buffers afterwards.
  virtual void wait() = 0;
  /// Helps it on without blocking; true once it is done. Throws as wait() does.
  virtual bool test() = 0;
  /// Gives it up without waiting for other ranks to come: afterwards nobody touches its buffers. A message
  /// that was not matched is withdrawn; a collective that others still have to join cannot go on without this
  /// rank, so all communication is aborted.
  virtual void abandon() noexcept = 0;
};

/// The handle of a non-blocking operation. The operation's buffers must stay valid, and destinations unread,
/// until wait() has returned or thrown or test() has given true. A handle that is dropped early, as an
/// exception does, abandons its operation, so that the exception gets out and not a hang.
class [[nodiscard]] Completion {
 public:
  /// Of something that was done at once.
  Completion() = default;
  explicit Completion(std::unique_ptr<Operation> operation) : operation_(std::move(operation)) {}
  Completion(Completion&&) noexcept = default;
  Completion& operator=(Completion&& other) noexcept;
  ~Completion();

  void wait();
  bool test();

 private:
  void abandon() noexcept;

  std::unique_ptr<Operation> operation_;  ///< null: done
};

}  // namespace plenum::comm
