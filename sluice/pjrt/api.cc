#include "sluice/pjrt/api.h"

namespace sluice::pjrt {
namespace {

Code code_of(int number) {
  // Sluice has no code for a caller without authentication (16).
  if (number == 16) return Code::kPermissionDenied;
  return number > 0 && number < 16 ? static_cast<Code>(number) : Code::kUnknown;
}

}  // namespace

base::Status Api::missing(const char* name) const {
  return base::fail(Code::kUnimplemented, "the plugin has no ", name, ": its PJRT version is ",
                    table_->pjrt_api_version.major_version, ".", table_->pjrt_api_version.minor_version,
                    "; install a newer one");
}

base::Status Api::failed(c::PJRT_Error* error) const {
  auto code = c::make<c::PJRT_Error_GetCode_Args>();
  code.error = error;
  // An error of this call is dropped, because handling it would lead back here.
  if (const c::Slot get = slot(c::CallOf<c::PJRT_Error_GetCode_Args>::kOffset); get != nullptr) {
    reinterpret_cast<c::PJRT_Error* (*)(c::PJRT_Error_GetCode_Args*)>(get)(&code);
  }
  auto message = c::make<c::PJRT_Error_Message_Args>();
  message.error = error;
  if (const c::Slot get = slot(c::CallOf<c::PJRT_Error_Message_Args>::kOffset); get != nullptr) {
    reinterpret_cast<void (*)(c::PJRT_Error_Message_Args*)>(get)(&message);
  }
  std::string text = message.message == nullptr ? "the plugin failed without a message"
                                                : std::string(message.message, message.message_size);
  auto destroy = c::make<c::PJRT_Error_Destroy_Args>();
  destroy.error = error;
  if (const c::Slot free = slot(c::CallOf<c::PJRT_Error_Destroy_Args>::kOffset); free != nullptr) {
    reinterpret_cast<void (*)(c::PJRT_Error_Destroy_Args*)>(free)(&destroy);
  }
  return base::fail(code_of(code.code), text);
}

}  // namespace sluice::pjrt
