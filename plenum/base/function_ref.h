#pragma once

#include <type_traits>
#include <utility>

namespace plenum::base {

template <typename Signature>
class FunctionRef;

/// A callable borrowed for the length of a call: what a parameter needs where std::function would allocate.
template <typename Result, typename... Args>
class FunctionRef<Result(Args...)> {
 public:
  // Not `requires`, by which clang-tidy 14 does not see that copies are left out.
  template <typename Callable,
            typename = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef> &&
                                        std::is_invocable_r_v<Result, Callable&, Args...>>>
  FunctionRef(Callable&& callable)
      : object_(const_cast<void*>(static_cast<const void*>(&callable))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<Callable>*>(object))(std::forward<Args>(args)...);
        }) {}

  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

}  // namespace plenum::base
