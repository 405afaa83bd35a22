// The part of XLA's foreign function interface that handlers of custom calls need, declared by hand from its
// documented layout (version 0.3; the parts here are the same since 0.1).
//
// A handler gets one call frame: operands, results and attributes as arrays of pointers, next to arrays of
// types that say what they point to. It returns null, or an error made with the frame's own table of
// functions. As in the C API of PJRT, structs and tables only grow, and struct_size is their size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/pjrt/c_api.h"

namespace sluice::pjrt::ffi {

// Opaque objects of the plugin.
struct Error;
struct ExecutionContext;

struct ExtensionBase {
  size_t struct_size;
  int type;
  ExtensionBase* next;
};
inline constexpr int kMetadataExtension = 1;

struct ApiVersion {
  size_t struct_size;
  ExtensionBase* extension_start;
  int major_version;
  int minor_version;
};

struct ErrorCreateArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  const char* message;  // copied
  int code;             // a canonical error code
};

struct ErrorDestroyArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  Error* error;
};

// The id of the device that the call runs on (not the replica's number).
struct DeviceOrdinalArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  ExecutionContext* context;
  int32_t device_ordinal;  // out
};

// A task for the plugin's pool of threads. The data must stay valid until the task has run, which may be
// after the call.
struct ThreadPoolScheduleArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  ExecutionContext* context;
  void (*task)(void* data);
  void* data;
};

// The table of functions; the slots that are not used here have no type.
struct Api {
  size_t struct_size;
  ExtensionBase* extension_start;
  ApiVersion api_version;
  const void* internal_api;
  Error* (*error_create)(ErrorCreateArgs*);
  c::Slot error_get_message;
  void (*error_destroy)(ErrorDestroyArgs*);
  c::Slot handler_register, stream_get, type_register, execution_context_get, state_set, state_get,
      device_memory_allocate, device_memory_free;
  Error* (*thread_pool_schedule)(ThreadPoolScheduleArgs*);
  c::Slot thread_pool_num_threads, future_create, future_set_available, future_set_error, run_id_get;
  Error* (*device_ordinal_get)(DeviceOrdinalArgs*);
};

// Element types.
enum DataType : int {
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
  kBF16 = 16,
};

struct Buffer {
  size_t struct_size;
  ExtensionBase* extension_start;
  int dtype;
  void* data;
  int64_t rank;
  int64_t* dims;
};
inline constexpr int kBuffer = 1;  // the only kind of operand and result

enum AttributeType : int { kArray = 1, kDictionary = 2, kScalar = 3, kString = 4 };
struct ByteSpan {
  const char* data;
  size_t size;
};
struct Scalar {
  int dtype;
  void* value;
};
struct Array {
  int dtype;
  size_t size;
  void* data;
};

struct Buffers {
  size_t struct_size;
  ExtensionBase* extension_start;
  int64_t size;
  int* types;
  void** values;
};
struct Attributes {
  size_t struct_size;
  ExtensionBase* extension_start;
  int64_t size;
  int* types;
  ByteSpan** names;  // sorted
  void** values;
};

struct CallFrame {
  size_t struct_size;
  ExtensionBase* extension_start;
  const Api* api;
  ExecutionContext* context;
  int stage;
  Buffers operands;
  Buffers results;
  Attributes attributes;
};
inline constexpr int kExecute = 3;  // the stage in which the call does its work

// The answer of a handler that is being registered.
struct Metadata {
  size_t struct_size;
  ApiVersion api_version;  // out
  uint32_t traits;         // out
};
struct MetadataExtension {
  ExtensionBase base;
  Metadata* metadata;
};

using Handler = Error* (*)(CallFrame*);

// The extension of PJRT's table of functions that registers handlers.
struct RegisterArgs {
  size_t struct_size;
  const char* target_name;
  size_t target_name_size;
  Handler handler;
  const char* platform_name;
  size_t platform_name_size;
  uint32_t traits;
};
struct RegistrationExtension {
  c::PJRT_Extension_Base base;
  c::Slot type_register, user_data_add;
  c::PJRT_Error* (*register_handler)(RegisterArgs*);
};
inline constexpr int kRegistrationExtension = 5;

}  // namespace sluice::pjrt::ffi
