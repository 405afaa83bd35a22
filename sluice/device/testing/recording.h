// Traces without a plugin, for tests: calls are recorded as the dispatcher's kernel records them (record.cc),
// on values that have types and no data.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/error.h"
#include "sluice/device/program/signature.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/storage.h"

namespace sluice::device::testing {

using stablehlo::DType;

// Returns the signature of the row of this name; kept forever, because instances refer to it.
inline const Signature& signature_of(const std::string& name) {
  static auto* all = new std::map<std::string, std::unique_ptr<Signature>>();
  std::unique_ptr<Signature>& found = (*all)[name];
  if (found == nullptr) {
    const size_t dot = name.find('.');
    const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
    const auto schema =
        c10::Dispatcher::singleton().findSchemaOrThrow(name.substr(0, dot).c_str(), overload.c_str());
    found = std::make_unique<Signature>(make_signature(*ops::find_row(name), schema.schema()));
  }
  return *found;
}

inline DataPtr typed_data(c10::IntArrayRef dims, DType dtype = DType::kF32,
                          Sameness sameness = Sameness::kGlobal) {
  auto data = c10::make_intrusive<Data>();
  data->type = intern(dtype, dims);
  data->sameness = sameness;
  return data;
}

// Returns a tensor with data.
inline at::Tensor input(c10::IntArrayRef dims, DType dtype = DType::kF32,
                        Sameness sameness = Sameness::kGlobal) {
  return make_tensor(typed_data(dims, dtype, sameness));
}

inline Call read_call(const std::string& name, const std::vector<c10::IValue>& arguments) {
  Call call;
  read_arguments(signature_of(name), arguments, call);
  return call;
}

inline const Instance& instance_of(const std::string& name, const std::vector<c10::IValue>& arguments) {
  const Call call = read_call(name, arguments);
  return find_instance(call.key, call.types,
                       [&](Instance& made) { fill_instance(signature_of(name), arguments, made); });
}

// Records a call and returns its results.
inline std::vector<at::Tensor> record_all(const std::string& name,
                                          const std::vector<c10::IValue>& arguments) {
  const Call call = read_call(name, arguments);
  const Instance& instance = instance_of(name, arguments);
  std::vector<Number> numbers;
  for (const Slot slot : instance.slots) numbers.push_back(call.numbers[slot.argument]);
  Trace& trace = Trace::get();
  const uint32_t node = trace.add(instance, call.operands, numbers);
  std::vector<at::Tensor> results;
  for (size_t i = 0; i < instance.results.size(); ++i)
    results.push_back(make_tensor(trace.result(node, static_cast<uint16_t>(i))));
  return results;
}

inline at::Tensor record(const std::string& name, const std::vector<c10::IValue>& arguments) {
  return record_all(name, arguments)[0];
}

// Matches a call that throws a sluice::Error with this code and with this text in its message.
inline auto Refuses(Code code, const std::string& part) {
  return ::testing::Throws<Error>(
      ::testing::AllOf(::testing::Property(&Error::code, code),
                       ::testing::Property(&Error::what, ::testing::HasSubstr(part))));
}

// Holds the trace's lock, and leaves an empty trace. The test's tensors must be destroyed by then.
class Recording : public ::testing::Test {
 protected:
  Recording() : trace(Trace::get()), lock_(trace.mutex) { trace.clear(); }
  ~Recording() override { trace.clear(); }
  Trace& trace;

 private:
  TraceLock lock_;
};

}  // namespace sluice::device::testing
