// The samples of the conformance test as data: what a line of samples/*.txt says (README.md has the format).
// Knows nothing of LibTorch.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::conformance {

// How to make one tensor.
struct TensorSpec {
  char kind =
      'f';  // f normal, p positive, u within (-0.9, 0.9), q probability, d distinct, i integer, b bool
  std::vector<int64_t> dims;
  int64_t low = 0, high = 9;   // kind i: the range, both ends included
  std::vector<double> values;  // explicit values, used instead of random ones when there are any
  std::string dtype;           // "" is the sample's type of this run
};

struct Value {
  enum class Kind { kNone, kNumber, kBool, kList, kTensor, kTensors, kText, kDType, kSame };
  Kind kind = Kind::kNone;
  double number = 0;         // kNumber
  bool whole = false;        // kNumber: written as an integer, without a point or exponent
  int64_t integer = 0;       // kNumber when whole; kBool; kSame: the argument's index
  std::vector<double> list;  // kList (bools are 0 and 1)
  TensorSpec tensor;         // kTensor
  std::vector<Value> items;  // kTensors: kTensor or kNone each
  std::string text;          // kText; kDType: "f32" or "float"
};

struct Argument {
  std::string name;  // "" for an argument by position
  Value value;
};

struct Sample {
  std::string file;  // the file's name without folder and extension
  int line = 0;
  std::string op;
  std::string text;  // the line, for messages
  std::vector<Argument> arguments;

  std::vector<std::string> dtypes{"f32", "f64", "bf16"};
  std::vector<std::string> itypes{"i64"};
  double tolerance = 1e-5;                     // of f32
  std::map<std::string, double> tolerance_of;  // of other types, when given
  double gradient_factor = 4;
  bool bits = false, nograd = false, noinplace = false, noout = false, noview = false;
  bool random = false, throws = false, norow = false, fallback = false, gradfallback = false;
  bool anystrides = false;
  int64_t until = 0;             // the last LibTorch, 2.N, that has the call; 0: all have it
  std::vector<int64_t> results;  // compare only these; empty means all
  std::string reference;         // the op that LibTorch computes, when another one
  std::vector<Argument> reference_arguments;

  // The tolerance of values in an element type ("f32", "bf16", …).
  double tolerance_in(const std::string& dtype) const;
  // "pointwise:12: aten::add.Tensor"
  std::string where() const;
};

// A line that cannot be read: "pointwise:12: expected …, found …".
class SampleError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One line without its comment; throws SampleError.
Sample parse_sample(std::string_view line, std::string_view file = "", int number = 0);

// All samples of a file, named by its stem; throws SampleError.
std::vector<Sample> read_samples(const std::string& path);

}  // namespace sluice::conformance
