// A kernel's call as its handler reads it. Everything in the program's text is checked here before it reaches
// memory; a faulty call is refused with what was found and expected. Internal to this room.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sluice/base/result.h"
#include "sluice/pjrt/program/custom_call.h"
#include "sluice/stablehlo/type.h"

namespace sluice::kernels {

// An attribute that calls of a target have, by its name in the program's text.
struct Attribute {
  enum class Type { kNumber, kReal, kList };  // i64, f64, array<i64>

  // Declares a number, or the entries of a list, in [min, max].
  static constexpr Attribute number(std::string_view name, int64_t min, int64_t max) {
    return {name, Type::kNumber, min, max, {}};
  }
  static constexpr Attribute flag(std::string_view name) { return number(name, 0, 1); }
  // Declares a flag that is 0 if the call lacks it. All other attributes are required.
  static constexpr Attribute optional_flag(std::string_view name) { return {name, Type::kNumber, 0, 1, 0}; }
  static constexpr Attribute real(std::string_view name) { return {name, Type::kReal, 0, 0, {}}; }
  static constexpr Attribute list(std::string_view name, int64_t min, int64_t max) {
    return {name, Type::kList, min, max, {}};
  }

  std::string_view name;
  Type type = Type::kNumber;
  int64_t min = 0, max = 0;
  std::optional<int64_t> missing = {};
};

// A tensor of a call: f32, dense.
struct Tensor {
  std::span<const int64_t> dims;
  float* data = nullptr;

  size_t rank() const { return dims.size(); }
  size_t dim(size_t i) const { return static_cast<size_t>(dims[i]); }
  size_t elements() const;
};

constexpr int64_t kAny = -1;  // a dim of any size

// The arguments of a call, valid during the call. Each reader fails with kInvalidArgument.
class Call {
 public:
  Call(std::string_view target, std::span<const Attribute> attributes, const pjrt::CustomCall& call)
      : target_(target), attributes_(attributes), call_(call) {}

  size_t num_operands() const { return call_.num_operands(); }
  size_t num_results() const { return call_.num_results(); }

  // Refuses a call whose numbers of operands and results are not among these.
  struct Arity {
    size_t operands, results;
  };
  base::Status takes(std::initializer_list<Arity> any_of) const;
  // Refuses a call with fewer operands; further operands are not read.
  base::Status takes_at_least(const Arity& arity) const;

  // Reads an attribute that the target declares with this type.
  base::Result<int64_t> number(std::string_view name) const;
  base::Result<bool> flag(std::string_view name) const;
  base::Result<double> real(std::string_view name) const;
  base::Result<stablehlo::Dims> list(std::string_view name, std::optional<size_t> entries = {}) const;

  // Reads operand or result i, called `name` in errors. Its dims may be any, or must be `dims`, or must have
  // at least one element and a rank in [min_rank, max_rank].
  base::Result<Tensor> operand(size_t i, std::string_view name) const;
  base::Result<Tensor> operand(size_t i, std::string_view name, std::span<const int64_t> dims) const;
  base::Result<Tensor> filled_operand(size_t i, std::string_view name, size_t min_rank,
                                      size_t max_rank = ~size_t{0}) const;
  base::Result<Tensor> result(size_t i, std::string_view name) const;
  base::Result<Tensor> result(size_t i, std::string_view name, std::span<const int64_t> dims) const;
  base::Result<Tensor> filled_result(size_t i, std::string_view name, size_t min_rank,
                                     size_t max_rank = ~size_t{0}) const;
  // Refuses a result that does not take that operand's memory.
  base::Status in_place(size_t result, size_t operand) const;

  // Returns the error that refuses this call.
  template <typename... Pieces>
  tl::unexpected<Error> refuse(const Pieces&... pieces) const {
    return base::fail(Code::kInvalidArgument, target_, ": ", pieces...,
                      "; a program must be made by the version of Sluice that runs it");
  }

 private:
  const Attribute& declared(std::string_view name, Attribute::Type type) const;
  tl::unexpected<Error> wrong_type(const Attribute& attribute) const;
  // `entry` is the index in a list.
  base::Status check_range(const Attribute& attribute, int64_t number,
                           std::optional<size_t> entry = {}) const;
  base::Result<Tensor> tensor(std::string_view kind, size_t i, std::string_view name) const;
  base::Result<Tensor> of_dims(std::string_view kind, size_t i, std::string_view name,
                               std::span<const int64_t> dims) const;
  base::Result<Tensor> filled(std::string_view kind, size_t i, std::string_view name, size_t min_rank,
                              size_t max_rank) const;

  std::string_view target_;
  std::span<const Attribute> attributes_;
  const pjrt::CustomCall& call_;
};

// Returns the error for a call that only another machine has a kernel for.
inline base::Status no_kernel(std::string_view what) {
  return base::fail(
      Code::kFailedPrecondition, "this CPU has no kernel for a ", what,
      " of a program that was made for another; switch the kernels off here (--cpu-kernels off)");
}

}  // namespace sluice::kernels
