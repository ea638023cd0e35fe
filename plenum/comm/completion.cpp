#include "plenum/comm/completion.h"

#include <exception>
#include <utility>

namespace plenum::comm {

Completion& Completion::operator=(Completion&& other) {
  if (this != &other) {
    finish_silently();
    operation_ = std::move(other.operation_);
  }
  return *this;
}

Completion::~Completion() {
  finish_silently();
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

// The owner of the buffers is about to free them, most likely because of an exception that says more.
void Completion::finish_silently() {
  try {
    wait();
  } catch (const std::exception&) {
  }
}

}  // namespace plenum::comm
