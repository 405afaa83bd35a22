// The part of the PJRT C API that Sluice uses, declared by hand from its documented layout (version 0.114).
//
// A plugin exports one function, GetPjrtApi, which returns a table of functions. A table only grows: a
// function may be called if its place is within the table's struct_size and is not null. Each function takes
// one argument struct, zero-initialised, whose struct_size is the end of its last field. A plugin takes
// structs that are larger than it expects and refuses smaller ones, so these follow the newest layout.
// Functions return null, or an error that the caller destroys. A pointer that a call returns belongs to the
// object of the call, unless said otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::pjrt::c {

inline constexpr int kApiMajor = 0;
inline constexpr int kApiMinor = 114;

// Opaque objects of a plugin.
struct PJRT_Error;
struct PJRT_Event;
struct PJRT_Client;
struct PJRT_Device;
struct PJRT_DeviceDescription;
struct PJRT_Memory;
struct PJRT_Buffer;
struct PJRT_Executable;
struct PJRT_LoadedExecutable;
struct PJRT_SerializedExecutable;
struct PJRT_TopologyDescription;

// The table of an optional feature, in a list of such tables.
struct PJRT_Extension_Base {
  size_t struct_size;
  int type;
  PJRT_Extension_Base* next;
};

struct PJRT_Api_Version {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  int major_version;
  int minor_version;
};

// A place in the table of functions; its real type follows from the argument struct (see CallOf).
using Slot = void (*)();

// All functions, in the order in which they were added to the API.
struct PJRT_Api {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Api_Version pjrt_api_version;
  Slot PJRT_Error_Destroy, PJRT_Error_Message, PJRT_Error_GetCode;
  Slot PJRT_Plugin_Initialize, PJRT_Plugin_Attributes;
  Slot PJRT_Event_Destroy, PJRT_Event_IsReady, PJRT_Event_Error, PJRT_Event_Await, PJRT_Event_OnReady;
  Slot PJRT_Client_Create, PJRT_Client_Destroy, PJRT_Client_PlatformName, PJRT_Client_ProcessIndex,
      PJRT_Client_PlatformVersion, PJRT_Client_Devices, PJRT_Client_AddressableDevices,
      PJRT_Client_LookupDevice, PJRT_Client_LookupAddressableDevice, PJRT_Client_AddressableMemories,
      PJRT_Client_Compile, PJRT_Client_DefaultDeviceAssignment, PJRT_Client_BufferFromHostBuffer;
  Slot PJRT_DeviceDescription_Id, PJRT_DeviceDescription_ProcessIndex, PJRT_DeviceDescription_Attributes,
      PJRT_DeviceDescription_Kind, PJRT_DeviceDescription_DebugString, PJRT_DeviceDescription_ToString;
  Slot PJRT_Device_GetDescription, PJRT_Device_IsAddressable, PJRT_Device_LocalHardwareId,
      PJRT_Device_AddressableMemories, PJRT_Device_DefaultMemory, PJRT_Device_MemoryStats;
  Slot PJRT_Memory_Id, PJRT_Memory_Kind, PJRT_Memory_DebugString, PJRT_Memory_ToString,
      PJRT_Memory_AddressableByDevices;
  Slot PJRT_Executable_Destroy, PJRT_Executable_Name, PJRT_Executable_NumReplicas,
      PJRT_Executable_NumPartitions, PJRT_Executable_NumOutputs, PJRT_Executable_SizeOfGeneratedCodeInBytes,
      PJRT_Executable_GetCostAnalysis, PJRT_Executable_OutputMemoryKinds, PJRT_Executable_OptimizedProgram,
      PJRT_Executable_Serialize;
  Slot PJRT_LoadedExecutable_Destroy, PJRT_LoadedExecutable_GetExecutable,
      PJRT_LoadedExecutable_AddressableDevices, PJRT_LoadedExecutable_Delete, PJRT_LoadedExecutable_IsDeleted,
      PJRT_LoadedExecutable_Execute;
  Slot PJRT_Executable_DeserializeAndLoad;
  Slot PJRT_LoadedExecutable_Fingerprint;
  Slot PJRT_Buffer_Destroy, PJRT_Buffer_ElementType, PJRT_Buffer_Dimensions, PJRT_Buffer_UnpaddedDimensions,
      PJRT_Buffer_DynamicDimensionIndices, PJRT_Buffer_GetMemoryLayout, PJRT_Buffer_OnDeviceSizeInBytes,
      PJRT_Buffer_Device, PJRT_Buffer_Memory, PJRT_Buffer_Delete, PJRT_Buffer_IsDeleted,
      PJRT_Buffer_CopyToDevice, PJRT_Buffer_ToHostBuffer, PJRT_Buffer_IsOnCpu, PJRT_Buffer_ReadyEvent,
      PJRT_Buffer_UnsafePointer, PJRT_Buffer_IncreaseExternalReferenceCount,
      PJRT_Buffer_DecreaseExternalReferenceCount, PJRT_Buffer_OpaqueDeviceMemoryDataPointer;
  Slot PJRT_CopyToDeviceStream_Destroy, PJRT_CopyToDeviceStream_AddChunk, PJRT_CopyToDeviceStream_TotalBytes,
      PJRT_CopyToDeviceStream_GranuleSize, PJRT_CopyToDeviceStream_CurrentBytes;
  Slot PJRT_TopologyDescription_Create, PJRT_TopologyDescription_Destroy,
      PJRT_TopologyDescription_PlatformName, PJRT_TopologyDescription_PlatformVersion,
      PJRT_TopologyDescription_GetDeviceDescriptions, PJRT_TopologyDescription_Serialize,
      PJRT_TopologyDescription_Attributes;
  Slot PJRT_Compile;
  Slot PJRT_Executable_OutputElementTypes, PJRT_Executable_OutputDimensions;
  Slot PJRT_Buffer_CopyToMemory;
  Slot PJRT_Client_CreateViewOfDeviceBuffer;
  Slot PJRT_Executable_Fingerprint;
  Slot PJRT_Client_TopologyDescription;
  Slot PJRT_Executable_GetCompiledMemoryStats;
  Slot PJRT_Memory_Kind_Id;
  Slot PJRT_ExecuteContext_Create, PJRT_ExecuteContext_Destroy;
  Slot PJRT_Buffer_CopyRawToHost;
  Slot PJRT_AsyncHostToDeviceTransferManager_Destroy, PJRT_AsyncHostToDeviceTransferManager_TransferData;
  Slot PJRT_Client_CreateBuffersForAsyncHostToDevice;
  Slot PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer, PJRT_AsyncHostToDeviceTransferManager_Device,
      PJRT_AsyncHostToDeviceTransferManager_BufferCount, PJRT_AsyncHostToDeviceTransferManager_BufferSize,
      PJRT_AsyncHostToDeviceTransferManager_SetBufferError, PJRT_AsyncHostToDeviceTransferManager_AddMetadata;
  Slot PJRT_Client_DmaMap, PJRT_Client_DmaUnmap, PJRT_Client_CreateUninitializedBuffer,
      PJRT_Client_UpdateGlobalProcessInfo;
  Slot PJRT_TopologyDescription_Deserialize;
  Slot PJRT_Client_CreateAliasBuffer, PJRT_Client_FulfillAliasBuffer;
  Slot PJRT_LoadedExecutable_GetDeviceAssignment;
  Slot PJRT_Client_CreateErrorBuffer;
  Slot PJRT_AsyncHostToDeviceTransferManager_TransferLiteral;
  Slot PJRT_Buffer_CopyRawToHostFuture;
  Slot PJRT_Device_PoisonExecution, PJRT_Device_CreateAsyncTrackingEvent;
  Slot PJRT_AsyncTrackingEvent_Destroy;
  Slot PJRT_Executable_GetCompileOptions;
  Slot PJRT_Buffer_DonateWithControlDependency;
  Slot PJRT_Event_Create, PJRT_Event_Set;
  Slot PJRT_Device_GetAttributes;
  Slot PJRT_Client_Load;
  Slot PJRT_LoadedExecutable_AddressableDeviceLogicalIds;
  Slot PJRT_Buffer_Bitcast;
  Slot PJRT_Error_ForEachPayload;
  Slot PJRT_TopologyDescription_Fingerprint;
  Slot PJRT_Executable_ParameterMemoryKinds;
  Slot PJRT_Device_ClearMemoryStats;
  Slot PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace,
      PJRT_TopologyDescription_GetMemorySpaceKindIds;
};
static_assert(offsetof(PJRT_Api, PJRT_Error_Destroy) == 40);
static_assert(sizeof(PJRT_Api) == 40 + 138 * sizeof(Slot));

enum PJRT_NamedValue_Type : unsigned { kString = 0, kInt64, kInt64List, kFloat, kBool };

// A name with a value: an option of a call, or an attribute of a result.
struct PJRT_NamedValue {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* name;
  size_t name_size;
  PJRT_NamedValue_Type type;
  union {
    const char* string_value;
    int64_t int64_value;
    const int64_t* int64_array_value;
    float float_value;
    bool bool_value;
  };
  size_t value_size;  // characters or elements; 1 for a single value
};

enum PJRT_Buffer_Type : unsigned {
  kInvalid = 0,
  kPred = 1,
  kS8 = 2,
  kS16 = 3,
  kS32 = 4,
  kS64 = 5,
  kU8 = 6,
  kU16 = 7,
  kU32 = 8,
  kU64 = 9,
  kF16 = 10,
  kF32 = 11,
  kF64 = 12,
  kBF16 = 13,
  kC64 = 14,
  kC128 = 15,
  kF8E5M2 = 16,
  kF8E4M3FN = 17,
};

// How long the caller keeps the host memory of a transfer alive and unchanged.
enum PJRT_HostBufferSemantics : unsigned {
  kImmutableOnlyDuringCall = 0,
  kImmutableUntilTransferCompletes = 1,
  kImmutableZeroCopy = 2,  // unchanged while the device buffer exists, which may be the host memory itself
  kMutableZeroCopy = 3,    // likewise, but the device may write to it
};

struct PJRT_Buffer_MemoryLayout_Tiled {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const int64_t* minor_to_major;
  size_t minor_to_major_size;
  const int64_t* tile_dims;
  const size_t* tile_dim_sizes;
  size_t num_tiles;
};

struct PJRT_Buffer_MemoryLayout {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer_MemoryLayout_Tiled tiled;  // the larger half of a union; the other half is never used here
  unsigned type;                         // 0: tiled
};

// A program's text ("mlir": StableHLO as MLIR text or bytecode).
struct PJRT_Program {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* code;  // only OptimizedProgram writes to it
  size_t code_size;
  const char* format;
  size_t format_size;
};

struct PJRT_ExecuteOptions {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  void** send_callbacks;
  void** recv_callbacks;
  size_t num_send_ops;
  size_t num_recv_ops;
  int launch_id;
  const int64_t* non_donatable_input_indices;
  size_t num_non_donatable_input_indices;
  void* context;
  const char* call_location;
  size_t num_tasks;
  int* task_ids;
  int64_t* incarnation_ids;
  void* multi_slice_config;
  bool use_major_to_minor_data_layout_for_callbacks;
  void** hlo_output_callbacks;
  size_t num_hlo_output_callbacks;
};

// The end of the fields that a plugin reads: the value of struct_size.
template <typename Struct>
inline constexpr size_t kStructSize = 0;
// The name and the place of the function that takes these arguments.
template <typename Args>
struct CallOf;

#define SLUICE_PJRT_STRUCT(name, last) \
  template <>                          \
  inline constexpr size_t kStructSize<name> = offsetof(name, last) + sizeof(name::last)
#define SLUICE_PJRT_CALL(function, last)                            \
  SLUICE_PJRT_STRUCT(function##_Args, last);                        \
  template <>                                                       \
  struct CallOf<function##_Args> {                                  \
    static constexpr const char* kName = #function;                 \
    static constexpr size_t kOffset = offsetof(PJRT_Api, function); \
  }
// The two fields with which each argument struct begins.
#define SLUICE_PJRT_HEAD \
  size_t struct_size;    \
  PJRT_Extension_Base* extension_start

SLUICE_PJRT_STRUCT(PJRT_NamedValue, value_size);
SLUICE_PJRT_STRUCT(PJRT_Program, format_size);
SLUICE_PJRT_STRUCT(PJRT_ExecuteOptions, num_hlo_output_callbacks);
SLUICE_PJRT_STRUCT(PJRT_Buffer_MemoryLayout_Tiled, num_tiles);
SLUICE_PJRT_STRUCT(PJRT_Buffer_MemoryLayout, type);

// Errors. Destroy and Message return nothing.
struct PJRT_Error_Destroy_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Error* error;
};
SLUICE_PJRT_CALL(PJRT_Error_Destroy, error);
struct PJRT_Error_Message_Args {
  SLUICE_PJRT_HEAD;
  const PJRT_Error* error;
  const char* message;
  size_t message_size;
};
SLUICE_PJRT_CALL(PJRT_Error_Message, message_size);
struct PJRT_Error_GetCode_Args {
  SLUICE_PJRT_HEAD;
  const PJRT_Error* error;
  int code;
};
SLUICE_PJRT_CALL(PJRT_Error_GetCode, code);

// Plugin. Initialize comes before everything else.
struct PJRT_Plugin_Initialize_Args {
  SLUICE_PJRT_HEAD;
};
SLUICE_PJRT_CALL(PJRT_Plugin_Initialize, extension_start);
struct PJRT_Plugin_Attributes_Args {
  SLUICE_PJRT_HEAD;
  const PJRT_NamedValue* attributes;
  size_t num_attributes;
};
SLUICE_PJRT_CALL(PJRT_Plugin_Attributes, num_attributes);

// Events: asynchronous work that succeeds or fails. The caller destroys them.
struct PJRT_Event_Destroy_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Event* event;
};
SLUICE_PJRT_CALL(PJRT_Event_Destroy, event);
struct PJRT_Event_IsReady_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Event* event;
  bool is_ready;
};
SLUICE_PJRT_CALL(PJRT_Event_IsReady, is_ready);
struct PJRT_Event_Error_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Event* event;
};
SLUICE_PJRT_CALL(PJRT_Event_Error, event);
struct PJRT_Event_Await_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Event* event;
};
SLUICE_PJRT_CALL(PJRT_Event_Await, event);
// The callback owns the error that it gets.
struct PJRT_Event_OnReady_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Event* event;
  void (*callback)(PJRT_Error* error, void* user_arg);
  void* user_arg;
};
SLUICE_PJRT_CALL(PJRT_Event_OnReady, user_arg);

// The store that several processes share, as a client's creator offers it. *callback_error makes an error;
// the plugin frees a returned value with value_deleter_callback. Called from any thread.
using PJRT_CallbackError = PJRT_Error* (*)(int code, const char* message, size_t message_size);
struct PJRT_KeyValueGetCallback_Args {
  SLUICE_PJRT_HEAD;
  const char* key;
  size_t key_size;
  int timeout_in_ms;
  PJRT_CallbackError* callback_error;
  void* user_arg;
  char* value;
  size_t value_size;
  void (*value_deleter_callback)(char* value);
};
SLUICE_PJRT_STRUCT(PJRT_KeyValueGetCallback_Args, value_deleter_callback);
// Does not wait: kNotFound for a missing key.
struct PJRT_KeyValueTryGetCallback_Args {
  SLUICE_PJRT_HEAD;
  const char* key;
  size_t key_size;
  PJRT_CallbackError* callback_error;
  void* user_arg;
  char* value;
  size_t value_size;
  void (*value_deleter_callback)(char* value);
};
SLUICE_PJRT_STRUCT(PJRT_KeyValueTryGetCallback_Args, value_deleter_callback);
struct PJRT_KeyValuePutCallback_Args {
  SLUICE_PJRT_HEAD;
  const char* key;
  size_t key_size;
  const char* value;
  size_t value_size;
  PJRT_CallbackError* callback_error;
  void* user_arg;
};
SLUICE_PJRT_STRUCT(PJRT_KeyValuePutCallback_Args, user_arg);

// Client.
struct PJRT_Client_Create_Args {
  SLUICE_PJRT_HEAD;
  const PJRT_NamedValue* create_options;
  size_t num_options;
  PJRT_Error* (*kv_get_callback)(PJRT_KeyValueGetCallback_Args*);  // set all three, or none of them
  void* kv_get_user_arg;
  PJRT_Error* (*kv_put_callback)(PJRT_KeyValuePutCallback_Args*);
  void* kv_put_user_arg;
  PJRT_Client* client;
  PJRT_Error* (*kv_try_get_callback)(PJRT_KeyValueTryGetCallback_Args*);  // missing in older plugins
  void* kv_try_get_user_arg;
};
SLUICE_PJRT_CALL(PJRT_Client_Create, kv_try_get_user_arg);
struct PJRT_Client_Destroy_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Client* client;
};
SLUICE_PJRT_CALL(PJRT_Client_Destroy, client);
struct PJRT_Client_PlatformName_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Client* client;
  const char* platform_name;
  size_t platform_name_size;
};
SLUICE_PJRT_CALL(PJRT_Client_PlatformName, platform_name_size);
struct PJRT_Client_PlatformVersion_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Client* client;
  const char* platform_version;
  size_t platform_version_size;
};
SLUICE_PJRT_CALL(PJRT_Client_PlatformVersion, platform_version_size);
struct PJRT_Client_ProcessIndex_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Client* client;
  int process_index;
};
SLUICE_PJRT_CALL(PJRT_Client_ProcessIndex, process_index);
// All devices, including those of other processes.
struct PJRT_Client_Devices_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Client* client;
  PJRT_Device* const* devices;
  size_t num_devices;
};
SLUICE_PJRT_CALL(PJRT_Client_Devices, num_devices);
struct PJRT_Client_AddressableDevices_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Client* client;
  PJRT_Device* const* addressable_devices;
  size_t num_addressable_devices;
};
SLUICE_PJRT_CALL(PJRT_Client_AddressableDevices, num_addressable_devices);
struct PJRT_Client_Compile_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Client* client;
  const PJRT_Program* program;
  const char* compile_options;  // a serialised CompileOptionsProto
  size_t compile_options_size;
  PJRT_LoadedExecutable* executable;
};
SLUICE_PJRT_CALL(PJRT_Client_Compile, executable);
struct PJRT_Client_BufferFromHostBuffer_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Client* client;
  const void* data;
  PJRT_Buffer_Type type;
  const int64_t* dims;
  size_t num_dims;
  const int64_t* byte_strides;  // null: dense, last dimension fastest
  size_t num_byte_strides;
  PJRT_HostBufferSemantics host_buffer_semantics;
  PJRT_Device* device;
  PJRT_Memory* memory;
  PJRT_Buffer_MemoryLayout* device_layout;
  PJRT_Event* done_with_host_buffer;
  PJRT_Buffer* buffer;
};
SLUICE_PJRT_CALL(PJRT_Client_BufferFromHostBuffer, buffer);

// Devices.
struct PJRT_Device_GetDescription_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Device* device;
  PJRT_DeviceDescription* device_description;
};
SLUICE_PJRT_CALL(PJRT_Device_GetDescription, device_description);
// Whether this process drives the device; nothing else can be done with devices of other processes.
struct PJRT_Device_IsAddressable_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Device* device;
  bool is_addressable;
};
SLUICE_PJRT_CALL(PJRT_Device_IsAddressable, is_addressable);
struct PJRT_Device_LocalHardwareId_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Device* device;
  int local_hardware_id;
};
SLUICE_PJRT_CALL(PJRT_Device_LocalHardwareId, local_hardware_id);
struct PJRT_Device_MemoryStats_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Device* device;
  int64_t bytes_in_use;
  int64_t peak_bytes_in_use;
  bool peak_bytes_in_use_is_set;
  int64_t num_allocs;
  bool num_allocs_is_set;
  int64_t largest_alloc_size;
  bool largest_alloc_size_is_set;
  int64_t bytes_limit;
  bool bytes_limit_is_set;
  int64_t bytes_reserved;
  bool bytes_reserved_is_set;
  int64_t peak_bytes_reserved;
  bool peak_bytes_reserved_is_set;
  int64_t bytes_reservable_limit;
  bool bytes_reservable_limit_is_set;
  int64_t largest_free_block_bytes;
  bool largest_free_block_bytes_is_set;
  int64_t pool_bytes;
  bool pool_bytes_is_set;
  int64_t peak_pool_bytes;
  bool peak_pool_bytes_is_set;
  int64_t peak_allocated_bytes;
  bool peak_allocated_bytes_is_set;
};
SLUICE_PJRT_CALL(PJRT_Device_MemoryStats, peak_allocated_bytes_is_set);
struct PJRT_DeviceDescription_Id_Args {
  SLUICE_PJRT_HEAD;
  PJRT_DeviceDescription* device_description;
  int id;
};
SLUICE_PJRT_CALL(PJRT_DeviceDescription_Id, id);
struct PJRT_DeviceDescription_ProcessIndex_Args {
  SLUICE_PJRT_HEAD;
  PJRT_DeviceDescription* device_description;
  int process_index;
};
SLUICE_PJRT_CALL(PJRT_DeviceDescription_ProcessIndex, process_index);
struct PJRT_DeviceDescription_Kind_Args {
  SLUICE_PJRT_HEAD;
  PJRT_DeviceDescription* device_description;
  const char* device_kind;
  size_t device_kind_size;
};
SLUICE_PJRT_CALL(PJRT_DeviceDescription_Kind, device_kind_size);
struct PJRT_DeviceDescription_Attributes_Args {
  SLUICE_PJRT_HEAD;
  PJRT_DeviceDescription* device_description;
  size_t num_attributes;
  const PJRT_NamedValue* attributes;
};
SLUICE_PJRT_CALL(PJRT_DeviceDescription_Attributes, attributes);

// Executables. A loaded executable is tied to a client's devices; the executable inside it has the
// statistics. The caller destroys both.
struct PJRT_LoadedExecutable_Destroy_Args {
  SLUICE_PJRT_HEAD;
  PJRT_LoadedExecutable* executable;
};
SLUICE_PJRT_CALL(PJRT_LoadedExecutable_Destroy, executable);
struct PJRT_LoadedExecutable_GetExecutable_Args {
  SLUICE_PJRT_HEAD;
  PJRT_LoadedExecutable* loaded_executable;
  PJRT_Executable* executable;
};
SLUICE_PJRT_CALL(PJRT_LoadedExecutable_GetExecutable, executable);
struct PJRT_LoadedExecutable_AddressableDevices_Args {
  SLUICE_PJRT_HEAD;
  PJRT_LoadedExecutable* executable;
  PJRT_Device* const* addressable_devices;
  size_t num_addressable_devices;
};
SLUICE_PJRT_CALL(PJRT_LoadedExecutable_AddressableDevices, num_addressable_devices);
// One list of arguments and one list of outputs for each device. The plugin fills the lists of outputs and,
// if it has room for them, one event for each device; the caller owns all of these.
struct PJRT_LoadedExecutable_Execute_Args {
  SLUICE_PJRT_HEAD;
  PJRT_LoadedExecutable* executable;
  PJRT_ExecuteOptions* options;
  PJRT_Buffer* const* const* argument_lists;
  size_t num_devices;
  size_t num_args;
  PJRT_Buffer** const* output_lists;
  PJRT_Event** device_complete_events;
  PJRT_Device* execute_device;
};
SLUICE_PJRT_CALL(PJRT_LoadedExecutable_Execute, execute_device);
struct PJRT_Executable_Destroy_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Executable* executable;
};
SLUICE_PJRT_CALL(PJRT_Executable_Destroy, executable);
struct PJRT_Executable_NumOutputs_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Executable* executable;
  size_t num_outputs;
};
SLUICE_PJRT_CALL(PJRT_Executable_NumOutputs, num_outputs);
struct PJRT_Executable_OutputElementTypes_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Executable* executable;
  PJRT_Buffer_Type* output_types;
  size_t num_output_types;
};
SLUICE_PJRT_CALL(PJRT_Executable_OutputElementTypes, num_output_types);
// The dimensions of all outputs in sequence, and the number of dimensions of each output.
struct PJRT_Executable_OutputDimensions_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Executable* executable;
  size_t num_outputs;
  const int64_t* dims;
  const size_t* dim_sizes;
};
SLUICE_PJRT_CALL(PJRT_Executable_OutputDimensions, dim_sizes);
struct PJRT_Executable_GetCostAnalysis_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Executable* executable;
  size_t num_properties;
  const PJRT_NamedValue* properties;
};
SLUICE_PJRT_CALL(PJRT_Executable_GetCostAnalysis, properties);
struct PJRT_Executable_GetCompiledMemoryStats_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Executable* executable;
  int64_t generated_code_size_in_bytes;
  int64_t argument_size_in_bytes;
  int64_t output_size_in_bytes;
  int64_t alias_size_in_bytes;
  int64_t temp_size_in_bytes;
  int64_t host_generated_code_size_in_bytes;
  int64_t host_argument_size_in_bytes;
  int64_t host_output_size_in_bytes;
  int64_t host_alias_size_in_bytes;
  int64_t host_temp_size_in_bytes;
  int64_t peak_memory_in_bytes;
  int64_t total_size_in_bytes;
  int64_t total_allocation_bytes;
  int64_t indefinite_allocations;
  int64_t peak_unpadded_heap_bytes;
};
SLUICE_PJRT_CALL(PJRT_Executable_GetCompiledMemoryStats, peak_unpadded_heap_bytes);
// The bytes are valid until the deleter is called with serialized_executable.
struct PJRT_Executable_Serialize_Args {
  SLUICE_PJRT_HEAD;
  const PJRT_Executable* executable;
  const char* serialized_bytes;
  size_t serialized_bytes_size;
  PJRT_SerializedExecutable* serialized_executable;
  void (*serialized_executable_deleter)(PJRT_SerializedExecutable* executable);
};
SLUICE_PJRT_CALL(PJRT_Executable_Serialize, serialized_executable_deleter);
struct PJRT_Executable_DeserializeAndLoad_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Client* client;
  const char* serialized_executable;
  size_t serialized_executable_size;
  PJRT_LoadedExecutable* loaded_executable;
  const char* overridden_serialized_compile_options;
  size_t overridden_serialized_compile_options_size;
  void* load_options;
};
SLUICE_PJRT_CALL(PJRT_Executable_DeserializeAndLoad, load_options);

// Topologies: descriptions of the devices of a machine that need not be here, and compiling for them. The
// caller destroys the description and the executable.
struct PJRT_TopologyDescription_Create_Args {
  SLUICE_PJRT_HEAD;
  const char* topology_name;
  size_t topology_name_size;
  const PJRT_NamedValue* create_options;
  size_t num_options;
  PJRT_TopologyDescription* topology;
};
SLUICE_PJRT_CALL(PJRT_TopologyDescription_Create, topology);
struct PJRT_TopologyDescription_Destroy_Args {
  SLUICE_PJRT_HEAD;
  PJRT_TopologyDescription* topology;
};
SLUICE_PJRT_CALL(PJRT_TopologyDescription_Destroy, topology);
struct PJRT_TopologyDescription_GetDeviceDescriptions_Args {
  SLUICE_PJRT_HEAD;
  const PJRT_TopologyDescription* topology;
  PJRT_DeviceDescription* const* descriptions;
  size_t num_descriptions;
};
SLUICE_PJRT_CALL(PJRT_TopologyDescription_GetDeviceDescriptions, num_descriptions);
struct PJRT_TopologyDescription_Attributes_Args {
  SLUICE_PJRT_HEAD;
  PJRT_TopologyDescription* topology;
  const PJRT_NamedValue* attributes;
  size_t num_attributes;
};
SLUICE_PJRT_CALL(PJRT_TopologyDescription_Attributes, num_attributes);
struct PJRT_Compile_Args {
  SLUICE_PJRT_HEAD;
  const PJRT_TopologyDescription* topology;
  const PJRT_Program* program;
  const char* compile_options;  // a serialised CompileOptionsProto
  size_t compile_options_size;
  PJRT_Client* client;  // null: without a client
  PJRT_Executable* executable;
};
SLUICE_PJRT_CALL(PJRT_Compile, executable);
// Called twice: with a null `code` it returns the size and the format, then it fills the caller's memory.
struct PJRT_Executable_OptimizedProgram_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Executable* executable;
  PJRT_Program* program;
};
SLUICE_PJRT_CALL(PJRT_Executable_OptimizedProgram, program);

// Buffers. The handle of a donated buffer must still be destroyed.
struct PJRT_Buffer_Destroy_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Buffer* buffer;
};
SLUICE_PJRT_CALL(PJRT_Buffer_Destroy, buffer);
// Frees the memory; the handle must still be destroyed.
struct PJRT_Buffer_Delete_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Buffer* buffer;
};
SLUICE_PJRT_CALL(PJRT_Buffer_Delete, buffer);
struct PJRT_Buffer_IsDeleted_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Buffer* buffer;
  bool is_deleted;
};
SLUICE_PJRT_CALL(PJRT_Buffer_IsDeleted, is_deleted);
struct PJRT_Buffer_IsOnCpu_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Buffer* buffer;
  bool is_on_cpu;
};
SLUICE_PJRT_CALL(PJRT_Buffer_IsOnCpu, is_on_cpu);
struct PJRT_Buffer_ReadyEvent_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Buffer* buffer;
  PJRT_Event* event;
};
SLUICE_PJRT_CALL(PJRT_Buffer_ReadyEvent, event);
// Copies to dst in the given layout (null: the device's own).
struct PJRT_Buffer_ToHostBuffer_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Buffer* src;
  PJRT_Buffer_MemoryLayout* host_layout;
  void* dst;
  size_t dst_size;
  PJRT_Event* event;
};
SLUICE_PJRT_CALL(PJRT_Buffer_ToHostBuffer, event);
// Returns the address of a buffer's memory, without waiting for the value.
struct PJRT_Buffer_UnsafePointer_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Buffer* buffer;
  uintptr_t buffer_pointer;
};
SLUICE_PJRT_CALL(PJRT_Buffer_UnsafePointer, buffer_pointer);
// While the count is above zero, the memory is neither moved nor changed, not even by donation.
struct PJRT_Buffer_IncreaseExternalReferenceCount_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Buffer* buffer;
};
SLUICE_PJRT_CALL(PJRT_Buffer_IncreaseExternalReferenceCount, buffer);
struct PJRT_Buffer_DecreaseExternalReferenceCount_Args {
  SLUICE_PJRT_HEAD;
  PJRT_Buffer* buffer;
};
SLUICE_PJRT_CALL(PJRT_Buffer_DecreaseExternalReferenceCount, buffer);

#undef SLUICE_PJRT_HEAD
#undef SLUICE_PJRT_CALL
#undef SLUICE_PJRT_STRUCT

// Returns a struct that is ready to be filled in.
template <typename Struct>
Struct make() {
  Struct made{};
  made.struct_size = kStructSize<Struct>;
  return made;
}

}  // namespace sluice::pjrt::c
