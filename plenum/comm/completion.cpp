#include "plenum/comm/completion.h"

#include <utility>

namespace plenum::comm {

Completion& Completion::operator=(Completion&& other) noexcept {
  if (this != &other) {
    abandon();
    operation_ = std::move(other.operation_);
  }
  return *this;
}

Completion::~Completion() {
  abandon();
}

void Completion::wait() {
  if (const std::unique_ptr<Operation> operation = std::move(operation_)) operation->wait();
}

bool Completion::test() {
  if (!operation_) return true;
  std::unique_ptr<Operation> operation = std::move(operation_);
  if (operation->test()) return true;
  operation_ = std::move(operation);
  return false;
}

void Completion::abandon() noexcept {
  if (operation_) operation_->abandon();
}

}  // namespace plenum::comm
