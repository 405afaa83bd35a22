// Result<T>: a value, or the sluice::Error that says why there is no value.
#pragma once

#include <tl/expected.hpp>
#include <utility>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"

namespace sluice::base {

template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

using Status = Result<void>;

// fail(code, pieces…): the error half of a Result; the pieces are joined as base::str does.
template <typename... Pieces>
tl::unexpected<Error> fail(Code code, const Pieces&... pieces) {
  return tl::unexpected<Error>(Error(code, base::str(pieces...)));
}

// Returns the result's error with `where` it happened in front of its text.
template <typename T, typename... Pieces>
tl::unexpected<Error> fail_at(const Result<T>& result, const Pieces&... where) {
  return tl::unexpected<Error>(
      Error(result.error().code(), base::str(where..., ": ", result.error().what())));
}

// Returns the value, or throws the error: for the public border only.
template <typename T>
T value_or_throw(Result<T> result) {
  if (!result) throw_error(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace sluice::base

// SLUICE_TRY(x, expression): declares or assigns x from a Result's value, or returns its error.
#define SLUICE_TRY(target, expression) \
  SLUICE_TRY_IMPL(SLUICE_JOIN(sluice_result_, __LINE__), target, expression)
#define SLUICE_TRY_IMPL(result, target, expression)                    \
  auto result = (expression);                                          \
  if (!result) return tl::unexpected<::sluice::Error>(result.error()); \
  target = std::move(*result)
// SLUICE_OK(expression): returns the error of a Status, if there is one.
#define SLUICE_OK(expression)                                                                        \
  do {                                                                                               \
    if (auto status = (expression); !status) return tl::unexpected<::sluice::Error>(status.error()); \
  } while (false)
#define SLUICE_JOIN(a, b) SLUICE_JOIN_IMPL(a, b)
#define SLUICE_JOIN_IMPL(a, b) a##b
