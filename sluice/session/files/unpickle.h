// A small unpickler: containers, numbers, strings, and the objects that `Objects` agrees to build. It runs no
// code of the file.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::sessions::pickle {

enum class Kind {
  kNone,
  kBool,
  kNumber,
  kReal,
  kText,
  kBytes,
  kTuple,
  kList,
  kDict,
  kGlobal,
  kTensor,
  kMark
};
const char* name_of(Kind kind);

struct Object;
using Ref = std::shared_ptr<Object>;

struct Object {
  Kind kind = Kind::kNone;
  int64_t number = 0;                        // kBool, kNumber
  double real = 0;                           // kReal
  std::string text;                          // kText, kBytes; kGlobal: "module.name"
  std::vector<Ref> items;                    // kTuple, kList
  std::vector<std::pair<Ref, Ref>> entries;  // kDict, in the file's order
  at::Tensor tensor;                         // kTensor
};
Ref make(Kind kind);

class Objects {
 public:
  virtual ~Objects() = default;
  // Returns the object that a persistent id stands for.
  virtual base::Result<Ref> load(const Ref& id) = 0;
  // Returns the result of calling a global by its name.
  virtual base::Result<Ref> call(const std::string& function, const std::vector<Ref>& args) = 0;
};

// Returns the object of a pickle (protocols 2 to 5). Containers nested more than 64 deep, or that contain
// themselves, are an error. Errors name `path` and the byte's offset. `used` gets the pickle's size in bytes.
base::Result<Ref> load(std::string_view bytes, const std::string& path, Objects& objects,
                       size_t* used = nullptr);

}  // namespace sluice::sessions::pickle
