// Plugins with one fault each, chosen by SLUICE_FAKE: files that a user may give as SLUICE_PLUGIN by mistake.
#include "sluice/pjrt/c_api.h"

#define SLUICE_FAKE_NO_FUNCTION 1
#define SLUICE_FAKE_OTHER_MAJOR 2
#define SLUICE_FAKE_OLD_MINOR 3
#define SLUICE_FAKE_FAILS 4

#if SLUICE_FAKE == SLUICE_FAKE_NO_FUNCTION
extern "C" __attribute__((visibility("default"))) int of_another_library() { return 0; }
#else

namespace {
using namespace sluice::pjrt::c;

constexpr char kMessage[] = "the chip is in use by another process";

PJRT_Error* initialize(PJRT_Plugin_Initialize_Args*) {
  static char error;
  return reinterpret_cast<PJRT_Error*>(&error);
}

void message(PJRT_Error_Message_Args* args) {
  args->message = kMessage;
  args->message_size = sizeof kMessage - 1;
}

PJRT_Error* code(PJRT_Error_GetCode_Args* args) {
  args->code = 14;
  return nullptr;
}

void destroy(PJRT_Error_Destroy_Args*) {}
}  // namespace

extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
  static PJRT_Api api{};
  api.struct_size = sizeof api;
  api.pjrt_api_version.major_version = SLUICE_FAKE == SLUICE_FAKE_OTHER_MAJOR ? 1 : 0;
  api.pjrt_api_version.minor_version = SLUICE_FAKE == SLUICE_FAKE_OLD_MINOR ? 12 : 114;
  api.PJRT_Error_Destroy = reinterpret_cast<Slot>(&destroy);
  api.PJRT_Error_Message = reinterpret_cast<Slot>(&message);
  api.PJRT_Error_GetCode = reinterpret_cast<Slot>(&code);
  api.PJRT_Plugin_Initialize = reinterpret_cast<Slot>(&initialize);
  return &api;
}
#endif
