#pragma once

#include <memory>

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
};

/// The handle of a non-blocking operation. The operation's buffers must stay valid, and destinations unread,
/// until wait() has returned or thrown or test() has given true. A handle that is dropped early waits first
/// and swallows the error.
class [[nodiscard]] Completion {
 public:
  /// Of something that was done at once.
  Completion() = default;
  explicit Completion(std::unique_ptr<Operation> operation) : operation_(std::move(operation)) {}
  Completion(Completion&&) = default;
  Completion& operator=(Completion&& other);
  ~Completion();

  void wait();
  bool test();

 private:
  void finish_silently();

  std::unique_ptr<Operation> operation_;  ///< null: done
};

}  // namespace plenum::comm
