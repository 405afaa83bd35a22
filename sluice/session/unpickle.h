// A small unpickler: containers, numbers, strings, and whatever `Objects` agrees to build. It runs no code of
// the file.
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
  std::vector<std::pair<Ref, Ref>> entries;  // kDict, in the order of the file
  at::Tensor tensor;                         // kTensor
};
Ref make(Kind kind);

class Objects {
 public:
  virtual ~Objects() = default;
  // What a persistent id stands for.
  virtual base::Result<Ref> load(const Ref& id) = 0;
  // The result of calling a global by its name.
  virtual base::Result<Ref> call(const std::string& function, const std::vector<Ref>& args) = 0;
};

// The object that a pickle (protocols 2 to 5) holds: containers at most 64 deep in each other, and none that
// holds itself. Errors name `path` and the byte's offset. `used` gets how many of the bytes are the pickle's.
base::Result<Ref> load(std::string_view bytes, const std::string& path, Objects& objects,
                       size_t* used = nullptr);

}  // namespace sluice::sessions::pickle
