// Calls through a plugin's table of functions, with the plugin's errors as Results.
#pragma once

#include "sluice/base/result.h"
#include "sluice/pjrt/c_api.h"

namespace sluice::pjrt {

// A handle of the table, cheap to copy. A plugin is never unloaded, so it is valid for the life of the
// process. Threads: any.
class Api {
 public:
  Api() = default;
  explicit Api(const c::PJRT_Api* table) : table_(table) {}

  const c::PJRT_Api* table() const { return table_; }

  // Whether the plugin has the function that takes these arguments.
  template <typename Args>
  bool has() const {
    return slot(c::CallOf<Args>::kOffset) != nullptr;
  }

  // Calls the function that takes these arguments. A function that the plugin lacks is kUnimplemented.
  template <typename Args>
  base::Status call(Args& args) const {
    const c::Slot found = slot(c::CallOf<Args>::kOffset);
    if (found == nullptr) [[unlikely]]
      return missing(c::CallOf<Args>::kName);
    return status(reinterpret_cast<c::PJRT_Error* (*)(Args*)>(found)(&args));
  }

  // Converts the plugin's error to a Status with its code and text; takes ownership of the error.
  base::Status status(c::PJRT_Error* error) const {
    if (error == nullptr) [[likely]]
      return {};
    return failed(error);
  }

 private:
  c::Slot slot(size_t offset) const {
    if (offset + sizeof(c::Slot) > table_->struct_size) return nullptr;
    return *reinterpret_cast<const c::Slot*>(reinterpret_cast<const char*>(table_) + offset);
  }
  base::Status missing(const char* name) const;
  base::Status failed(c::PJRT_Error* error) const;

  const c::PJRT_Api* table_ = nullptr;
};

}  // namespace sluice::pjrt
