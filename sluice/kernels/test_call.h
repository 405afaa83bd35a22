// Calls of kernels for tests, as a plugin would make them.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "sluice/kernels/registry.h"
#include "sluice/pjrt/program/custom_call.h"

namespace sluice::kernels {

struct TestTensor {
  stablehlo::Dims dims;
  stablehlo::DType dtype = stablehlo::DType::kF32;
};
using TestAttribute = std::variant<int64_t, double, std::string, stablehlo::Dims>;

struct TestCall {
  std::string target;
  std::vector<TestTensor> operands, results;
  std::map<std::string, TestAttribute> attributes = {};
  size_t in_place = 0;  // the number of results that take the memory of the first operands
};

// The frame of a call: its tensors' memory has the size of their dims and is filled with halves.
class TestFrame {
 public:
  explicit TestFrame(const TestCall& call) {
    frame_.api = &api_;
    frame_.stage = pjrt::ffi::kExecute;
    for (const TestTensor& tensor : call.operands) operands_.push_back(buffer(tensor, nullptr));
    for (size_t i = 0; i < call.results.size(); ++i)
      results_.push_back(buffer(call.results[i], i < call.in_place ? operands_[i]->data : nullptr));
    for (const auto& [name, value] : call.attributes) add(name, value);
    const auto fill = [this](pjrt::ffi::Buffers& to, std::vector<pjrt::ffi::Buffer*>& from) {
      to.size = static_cast<int64_t>(from.size());
      to.values = reinterpret_cast<void**>(from.data());
      to.types = buffer_types_.emplace_back(from.size() + 1, pjrt::ffi::kBuffer).data();
    };
    fill(frame_.operands, operands_);
    fill(frame_.results, results_);
    frame_.attributes.size = static_cast<int64_t>(names_.size());
    frame_.attributes.types = types_.data();
    frame_.attributes.names = names_.data();
    frame_.attributes.values = values_.data();
  }
  TestFrame(const TestFrame&) = delete;
  TestFrame& operator=(const TestFrame&) = delete;

  pjrt::CustomCall call() const { return pjrt::CustomCall(&frame_); }

 private:
  pjrt::ffi::Buffer* buffer(const TestTensor& tensor, void* memory) {
    stablehlo::Dims& dims = dims_.emplace_back(tensor.dims);
    size_t elements = 1;
    for (const int64_t dim : dims) elements *= static_cast<size_t>(dim);
    const bool f32 = tensor.dtype == stablehlo::DType::kF32;
    if (memory == nullptr) memory = memory_.emplace_back(elements * (f32 ? 1 : 2), 0.5f).data();
    return &buffers_.emplace_back(pjrt::ffi::Buffer{sizeof(pjrt::ffi::Buffer), nullptr,
                                                    f32 ? pjrt::ffi::kF32 : pjrt::ffi::kF64, memory,
                                                    static_cast<int64_t>(dims.size()), dims.data()});
  }

  void add(const std::string& name, const TestAttribute& value) {
    TestAttribute& kept = kept_.emplace_back(value);
    const std::string& kept_name = kept_names_.emplace_back(name);
    names_.push_back(&spans_.emplace_back(pjrt::ffi::ByteSpan{kept_name.data(), kept_name.size()}));
    if (auto* const number = std::get_if<int64_t>(&kept))
      append(pjrt::ffi::kScalar, &scalars_.emplace_back(pjrt::ffi::Scalar{pjrt::ffi::kS64, number}));
    else if (auto* const real = std::get_if<double>(&kept))
      append(pjrt::ffi::kScalar, &scalars_.emplace_back(pjrt::ffi::Scalar{pjrt::ffi::kF64, real}));
    else if (auto* const text = std::get_if<std::string>(&kept))
      append(pjrt::ffi::kString, &spans_.emplace_back(pjrt::ffi::ByteSpan{text->data(), text->size()}));
    else if (auto* const list = std::get_if<stablehlo::Dims>(&kept))
      append(pjrt::ffi::kArray,
             &arrays_.emplace_back(pjrt::ffi::Array{pjrt::ffi::kS64, list->size(), list->data()}));
  }
  void append(int type, void* value) {
    types_.push_back(type);
    values_.push_back(value);
  }

  pjrt::ffi::Api api_{};  // without functions: no thread helps
  pjrt::ffi::CallFrame frame_{};
  std::deque<stablehlo::Dims> dims_;
  std::deque<std::vector<float>> memory_;
  std::deque<std::vector<int>> buffer_types_;
  std::deque<pjrt::ffi::Buffer> buffers_;
  std::deque<TestAttribute> kept_;
  std::deque<std::string> kept_names_;
  std::deque<pjrt::ffi::ByteSpan> spans_;
  std::deque<pjrt::ffi::Scalar> scalars_;
  std::deque<pjrt::ffi::Array> arrays_;
  std::vector<pjrt::ffi::Buffer*> operands_, results_;
  std::vector<pjrt::ffi::ByteSpan*> names_;
  std::vector<void*> values_;
  std::vector<int> types_;
};

// Returns the answer of the row with the call's target.
inline base::Status answer(const TestCall& call) {
  for (const Row& row : registry())
    if (row.target == call.target) return answer(row, TestFrame(call).call());
  return base::fail(Code::kNotFound, "no row for ", call.target);
}

}  // namespace sluice::kernels
