#include "sluice/pjrt/c_api.h"

#include <gtest/gtest.h>

#include "sluice/pjrt/api.h"

namespace sluice::pjrt {
namespace {

using namespace c;

constexpr size_t place(size_t slot) { return 40 + 8 * slot; }

// Places of functions and ends of structs as the layout of version 0.114 has them.
TEST(CApi, FunctionsAreInTheirPlaces) {
  EXPECT_EQ(offsetof(PJRT_Api, PJRT_Error_Destroy), place(0));
  EXPECT_EQ(offsetof(PJRT_Api, PJRT_Client_Create), place(10));
  EXPECT_EQ(offsetof(PJRT_Api, PJRT_Client_BufferFromHostBuffer), place(22));
  EXPECT_EQ(offsetof(PJRT_Api, PJRT_Device_IsAddressable), place(30));
  EXPECT_EQ(offsetof(PJRT_Api, PJRT_Device_MemoryStats), place(34));
  EXPECT_EQ(offsetof(PJRT_Api, PJRT_Executable_Serialize), place(49));
  EXPECT_EQ(offsetof(PJRT_Api, PJRT_LoadedExecutable_Execute), place(55));
  EXPECT_EQ(offsetof(PJRT_Api, PJRT_Buffer_ToHostBuffer), place(70));
  EXPECT_EQ(offsetof(PJRT_Api, PJRT_Executable_OptimizedProgram), place(48));
  EXPECT_EQ(offsetof(PJRT_Api, PJRT_TopologyDescription_Create), place(82));
  EXPECT_EQ(offsetof(PJRT_Api, PJRT_TopologyDescription_Attributes), place(88));
  EXPECT_EQ(offsetof(PJRT_Api, PJRT_Compile), place(89));
  EXPECT_EQ(offsetof(PJRT_Api, PJRT_Executable_GetCompiledMemoryStats), place(96));
  EXPECT_EQ(offsetof(PJRT_Api, PJRT_LoadedExecutable_GetDeviceAssignment), place(117));
  EXPECT_EQ(offsetof(PJRT_Api, PJRT_TopologyDescription_GetMemorySpaceKindIds), place(137));
}

TEST(CApi, StructsEndWhereTheyShould) {
  EXPECT_EQ(kStructSize<PJRT_NamedValue>, 56u);
  EXPECT_EQ(kStructSize<PJRT_Client_Create_Args>, 88u);
  EXPECT_EQ(kStructSize<PJRT_KeyValueGetCallback_Args>, 80u);
  EXPECT_EQ(kStructSize<PJRT_KeyValueTryGetCallback_Args>, 72u);
  EXPECT_EQ(kStructSize<PJRT_KeyValuePutCallback_Args>, 64u);
  EXPECT_EQ(kStructSize<PJRT_Client_BufferFromHostBuffer_Args>, 120u);
  EXPECT_EQ(kStructSize<PJRT_Device_MemoryStats_Args>, 201u);
  EXPECT_EQ(kStructSize<PJRT_ExecuteOptions>, 144u);
  EXPECT_EQ(kStructSize<PJRT_LoadedExecutable_Execute_Args>, 80u);
  EXPECT_EQ(kStructSize<PJRT_Executable_GetCompiledMemoryStats_Args>, 144u);
  EXPECT_EQ(kStructSize<PJRT_Executable_DeserializeAndLoad_Args>, 72u);
  EXPECT_EQ(kStructSize<PJRT_Buffer_MemoryLayout>, 76u);
  EXPECT_EQ(kStructSize<PJRT_TopologyDescription_Create_Args>, 56u);
  EXPECT_EQ(kStructSize<PJRT_TopologyDescription_Destroy_Args>, 24u);
  EXPECT_EQ(kStructSize<PJRT_TopologyDescription_GetDeviceDescriptions_Args>, 40u);
  EXPECT_EQ(kStructSize<PJRT_TopologyDescription_Attributes_Args>, 40u);
  EXPECT_EQ(kStructSize<PJRT_Compile_Args>, 64u);
  EXPECT_EQ(kStructSize<PJRT_Executable_OptimizedProgram_Args>, 32u);
  EXPECT_EQ(kStructSize<PJRT_Event_IsReady_Args>, 25u);
  EXPECT_EQ(kStructSize<PJRT_DeviceDescription_Id_Args>, 28u);
  EXPECT_EQ(kStructSize<PJRT_Device_IsAddressable_Args>, 25u);
  EXPECT_EQ(kStructSize<PJRT_Buffer_Delete_Args>, 24u);
  EXPECT_EQ(make<PJRT_Error_Message_Args>().struct_size, 40u);
}

PJRT_Error* always_ready(PJRT_Event_IsReady_Args* args) {
  args->is_ready = true;
  return nullptr;
}

TEST(Api, CallsWhatIsThere) {
  PJRT_Api table{};
  table.struct_size = sizeof table;
  table.PJRT_Event_IsReady = reinterpret_cast<Slot>(&always_ready);
  auto args = make<PJRT_Event_IsReady_Args>();
  EXPECT_TRUE(Api(&table).call(args));
  EXPECT_TRUE(args.is_ready);
}

TEST(Api, DoesNotCallBeyondTheTable) {
  PJRT_Api table{};
  table.pjrt_api_version.minor_version = 77;
  table.PJRT_Event_IsReady = reinterpret_cast<Slot>(&always_ready);
  table.struct_size =
      offsetof(PJRT_Api, PJRT_Event_IsReady);  // an older plugin: what comes after is not its own
  auto args = make<PJRT_Event_IsReady_Args>();
  const auto status = Api(&table).call(args);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::kUnimplemented);
  EXPECT_STREQ(status.error().what(),
               "the plugin has no PJRT_Event_IsReady: its PJRT version is 0.77; install a newer one");
  EXPECT_FALSE(Api(&table).has<PJRT_Event_IsReady_Args>());
  table.struct_size += sizeof(Slot);
  EXPECT_TRUE(Api(&table).has<PJRT_Event_IsReady_Args>());
  table.PJRT_Event_IsReady = nullptr;
  EXPECT_FALSE(Api(&table).call(args));
}

PJRT_Error* unauthenticated(PJRT_Error_GetCode_Args* args) {
  args->code = 16;
  return nullptr;
}

TEST(Api, ErrorsKeepWhatThePluginGives) {
  PJRT_Api table{};
  table.struct_size = sizeof table;
  table.PJRT_Error_GetCode = reinterpret_cast<Slot>(&unauthenticated);
  char error;
  const auto status = Api(&table).status(reinterpret_cast<PJRT_Error*>(&error));
  EXPECT_EQ(status.error().code(), Code::kPermissionDenied);
  EXPECT_STREQ(status.error().what(), "the plugin failed without a message");
}

}  // namespace
}  // namespace sluice::pjrt
