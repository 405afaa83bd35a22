// For tests: one call of a row on parameters of given types, without LibTorch and without a compiler.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/ops/row.h"

namespace sluice::ops {

// Slots for tests: run-time scalars become parameters; `asked` remembers which ones were requested.
class TestSlots : public Slots {
 public:
  explicit TestSlots(Builder& builder) : builder_(builder) {}
  Value scalar(size_t index, DType dtype) override {
    asked.emplace_back(index, dtype);
    return builder_.parameter({dtype, {}});
  }
  Value random_state() override { return builder_.parameter({DType::kU64, {2}}); }
  Replicas replicas() const override { return world; }
  Value replica_id() override { return builder_.parameter({DType::kS32, {}}); }
  Site& next_site() override { return site_; }
  bool over_replicas() const override { return false; }

  std::vector<std::pair<size_t, DType>> asked;
  Replicas world;

 private:
  Builder& builder_;
  Site site_;
};

class TestCall {
 public:
  explicit TestCall(std::string_view op) : op_(op) {}

  TestCall& add(std::string name, Arg arg) {
    names_.push_back(std::move(name));
    args_.push_back(std::move(arg));
    return *this;
  }
  TestCall& tensor(std::string name, Type type) {
    Arg arg;
    arg.kind = Arg::Kind::kTensor;
    arg.value = builder.parameter(type);
    return add(std::move(name), std::move(arg));
  }
  // Adds a number, which is a constant if `constant`, else a run-time scalar.
  TestCall& number(std::string name, double value, bool constant = false,
                   Category category = Category::kFloat) {
    Arg arg;
    arg.kind = Arg::Kind::kScalar;
    arg.category = category;
    arg.constant = constant;
    arg.number = value;
    arg.integer = static_cast<int64_t>(value);
    return add(std::move(name), std::move(arg));
  }
  // Adds a host tensor that represents a number.
  TestCall& wrapped(std::string name, DType dtype) {
    Arg arg;
    arg.kind = Arg::Kind::kTensor;
    arg.wrapped = arg.from_slot = true;
    arg.dtype = dtype;
    return add(std::move(name), std::move(arg));
  }
  TestCall& integer(std::string name, int64_t value) {
    Arg arg;
    arg.kind = Arg::Kind::kInt;
    arg.ints = {value};
    return add(std::move(name), std::move(arg));
  }
  TestCall& ints(std::string name, Dims values) {
    Arg arg;
    arg.kind = Arg::Kind::kInts;
    arg.ints = std::move(values);
    return add(std::move(name), std::move(arg));
  }
  TestCall& flag(std::string name, bool value) {
    Arg arg;
    arg.kind = Arg::Kind::kBool;
    arg.ints = {value};
    return add(std::move(name), std::move(arg));
  }
  TestCall& text(std::string name, std::string value) {
    Arg arg;
    arg.kind = Arg::Kind::kText;
    arg.text = std::move(value);
    return add(std::move(name), std::move(arg));
  }
  TestCall& none(std::string name) { return add(std::move(name), Arg{}); }

  Emit emit() { return Emit(builder, op_, names_, args_, slots); }
  // Returns the types of the row's results; throws the row's errors.
  std::vector<Type> types() {
    Emit e = emit();
    std::vector<Type> result;
    for (Value value : find_row(op_)->emit(e)) result.push_back(value.type());
    return result;
  }

  Builder builder;
  TestSlots slots{builder};

 private:
  std::string op_;
  std::vector<std::string> names_;
  std::vector<Arg> args_;
};

}  // namespace sluice::ops
