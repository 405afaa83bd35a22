#include "sluice/pjrt/program/custom_call.h"

#include <exception>

namespace sluice::pjrt {
namespace {

// How often this thread was asked for metadata: a plugin asks while it registers a handler.
thread_local int metadata_questions = 0;

template <typename Field>
bool reaches(size_t struct_size, size_t offset) {
  return struct_size >= offset + sizeof(Field);
}
#define SLUICE_REACHES(pointer, field)                                   \
  reaches<decltype(std::remove_reference_t<decltype(*pointer)>::field)>( \
      (pointer)->struct_size, offsetof(std::remove_reference_t<decltype(*pointer)>, field))

// Answers with the plugin's own version: a plugin silently drops handlers of versions that it does not know.
bool answer_metadata(ffi::CallFrame* frame) {
  for (ffi::ExtensionBase* next = frame->extension_start; next != nullptr; next = next->next) {
    if (next->type != ffi::kMetadataExtension) continue;
    ffi::Metadata* metadata = reinterpret_cast<ffi::MetadataExtension*>(next)->metadata;
    metadata->api_version.major_version = frame->api->api_version.major_version;
    metadata->api_version.minor_version = frame->api->api_version.minor_version;
    metadata->traits = 0;
    ++metadata_questions;
    return true;
  }
  return false;
}

ffi::Error* make_error(const ffi::CallFrame* frame, Code code, const char* message) {
  ffi::ErrorCreateArgs args{};
  args.struct_size = offsetof(ffi::ErrorCreateArgs, code) + sizeof args.code;
  args.message = message;
  args.code = static_cast<int>(code);
  return frame->api->error_create(&args);
}

// Whether there was no error. Its text would not help the caller, so it is dropped.
bool succeeded(const ffi::Api* api, ffi::Error* error) {
  if (error == nullptr) return true;
  ffi::ErrorDestroyArgs args{};
  args.struct_size = offsetof(ffi::ErrorDestroyArgs, error) + sizeof args.error;
  args.error = error;
  api->error_destroy(&args);
  return false;
}

std::optional<stablehlo::DType> to_dtype(int type) {
  using stablehlo::DType;
  switch (type) {
    case ffi::kPred:
      return DType::kPred;
    case ffi::kS8:
      return DType::kS8;
    case ffi::kS16:
      return DType::kS16;
    case ffi::kS32:
      return DType::kS32;
    case ffi::kS64:
      return DType::kS64;
    case ffi::kU8:
      return DType::kU8;
    case ffi::kU16:
      return DType::kU16;
    case ffi::kU32:
      return DType::kU32;
    case ffi::kU64:
      return DType::kU64;
    case ffi::kF16:
      return DType::kF16;
    case ffi::kBF16:
      return DType::kBF16;
    case ffi::kF32:
      return DType::kF32;
    case ffi::kF64:
      return DType::kF64;
    default:
      return std::nullopt;
  }
}

base::Result<CallBuffer> buffer_at(const ffi::Buffers& list, size_t i, const char* what) {
  if (i >= static_cast<size_t>(list.size) || list.types[i] != ffi::kBuffer) {
    return base::fail(Code::kInvalidArgument, "a custom call has no ", what, " ", i);
  }
  const auto* raw = static_cast<const ffi::Buffer*>(list.values[i]);
  const auto dtype = to_dtype(raw->dtype);
  if (!dtype) {
    return base::fail(Code::kUnimplemented, what, " ", i, " of a custom call has XLA's element type ",
                      raw->dtype, ", which Sluice does not know");
  }
  return CallBuffer{*dtype, {raw->dims, static_cast<size_t>(raw->rank)}, raw->data};
}

base::Status wrong_type(std::string_view name, const char* expected) {
  return base::fail(Code::kInvalidArgument, "the custom call's attribute ", name, " must be ", expected);
}

}  // namespace

size_t CallBuffer::elements() const {
  size_t count = 1;
  for (int64_t dim : dims) count *= static_cast<size_t>(dim);
  return count;
}

base::Result<CallBuffer> CustomCall::operand(size_t i) const {
  return buffer_at(frame_->operands, i, "operand");
}
base::Result<CallBuffer> CustomCall::result(size_t i) const {
  return buffer_at(frame_->results, i, "result");
}

const void* CustomCall::find(std::string_view name, int& type) const {
  const ffi::Attributes& all = frame_->attributes;
  for (int64_t i = 0; i < all.size; ++i) {
    if (std::string_view(all.names[i]->data, all.names[i]->size) != name) continue;
    type = all.types[i];
    return all.values[i];
  }
  return nullptr;
}

base::Result<std::optional<int64_t>> CustomCall::number(std::string_view name) const {
  int type = 0;
  const auto* scalar = static_cast<const ffi::Scalar*>(find(name, type));
  if (scalar == nullptr) return std::nullopt;
  if (type != ffi::kScalar || scalar->dtype != ffi::kS64) {
    return tl::unexpected<Error>(wrong_type(name, "an i64").error());
  }
  return *static_cast<const int64_t*>(scalar->value);
}

base::Result<std::optional<double>> CustomCall::real(std::string_view name) const {
  int type = 0;
  const auto* scalar = static_cast<const ffi::Scalar*>(find(name, type));
  if (scalar == nullptr) return std::nullopt;
  if (type != ffi::kScalar || scalar->dtype != ffi::kF64) {
    return tl::unexpected<Error>(wrong_type(name, "an f64").error());
  }
  return *static_cast<const double*>(scalar->value);
}

base::Result<std::optional<std::string_view>> CustomCall::text(std::string_view name) const {
  int type = 0;
  const auto* span = static_cast<const ffi::ByteSpan*>(find(name, type));
  if (span == nullptr) return std::nullopt;
  if (type != ffi::kString) return tl::unexpected<Error>(wrong_type(name, "a string").error());
  return std::string_view(span->data, span->size);
}

base::Result<std::optional<std::span<const int64_t>>> CustomCall::numbers(std::string_view name) const {
  int type = 0;
  const auto* array = static_cast<const ffi::Array*>(find(name, type));
  if (array == nullptr) return std::nullopt;
  if (type != ffi::kArray || (array->dtype != ffi::kS64 && array->size > 0)) {
    return tl::unexpected<Error>(wrong_type(name, "an array<i64>").error());
  }
  return std::span<const int64_t>(static_cast<const int64_t*>(array->data), array->size);
}

base::Result<int> CustomCall::device_id() const {
  const ffi::Api* api = frame_->api;
  if (!SLUICE_REACHES(api, device_ordinal_get) || api->device_ordinal_get == nullptr) {
    return base::fail(Code::kUnimplemented,
                      "the plugin does not tell a custom call its device: install a newer one");
  }
  ffi::DeviceOrdinalArgs args{};
  args.struct_size = offsetof(ffi::DeviceOrdinalArgs, device_ordinal) + sizeof args.device_ordinal;
  args.context = frame_->context;
  if (!succeeded(api, api->device_ordinal_get(&args))) {
    return base::fail(Code::kInternal, "the plugin did not tell a custom call its device");
  }
  return args.device_ordinal;
}

bool CustomCall::schedule(void (*task)(void*), void* data) const {
  const ffi::Api* api = frame_->api;
  if (!SLUICE_REACHES(api, thread_pool_schedule) || api->thread_pool_schedule == nullptr) return false;
  ffi::ThreadPoolScheduleArgs args{};
  args.struct_size = offsetof(ffi::ThreadPoolScheduleArgs, data) + sizeof args.data;
  args.context = frame_->context;
  args.task = task;
  args.data = data;
  return succeeded(api, api->thread_pool_schedule(&args));
}

namespace internal {

ffi::Error* run_custom_call(ffi::CallFrame* frame, CustomCallFunction function) noexcept {
  if (answer_metadata(frame)) return nullptr;
  if (frame->stage != ffi::kExecute) return nullptr;
  try {
    const base::Status status = function(CustomCall(frame));
    return status ? nullptr : make_error(frame, status.error().code(), status.error().what());
  } catch (const Error& error) {
    return make_error(frame, error.code(), error.what());
  } catch (const std::exception& error) {
    return make_error(frame, Code::kInternal, error.what());
  } catch (...) {
    return make_error(frame, Code::kInternal, "a custom call threw something that is not a std::exception");
  }
}

base::Status register_handler(const Plugin& plugin, std::string_view target, ffi::Handler handler) {
  const c::PJRT_Api* table = plugin.api().table();
  const ffi::RegistrationExtension* found = nullptr;
  for (const c::PJRT_Extension_Base* next = table->extension_start; next != nullptr; next = next->next) {
    if (next->type == ffi::kRegistrationExtension) {
      found = reinterpret_cast<const ffi::RegistrationExtension*>(next);
    }
  }
  if (found == nullptr || found->base.struct_size < sizeof *found || found->register_handler == nullptr) {
    return base::fail(Code::kUnimplemented, "the plugin ", plugin.name(), " (", plugin.path(),
                      ") takes no handlers of custom calls: use XLA's CPU plugin, or a newer one");
  }
  constexpr std::string_view kPlatform = "Host";
  ffi::RegisterArgs args{};
  args.struct_size = offsetof(ffi::RegisterArgs, traits) + sizeof args.traits;
  args.target_name = target.data();
  args.target_name_size = target.size();
  args.handler = handler;
  args.platform_name = kPlatform.data();
  args.platform_name_size = kPlatform.size();
  const int before = metadata_questions;
  SLUICE_OK(plugin.api().status(found->register_handler(&args)));
  if (metadata_questions == before) {
    return base::fail(Code::kInternal, "the plugin ", plugin.name(), " did not ask the handler of ", target,
                      " for its version, so it was not registered");
  }
  return {};
}

}  // namespace internal
}  // namespace sluice::pjrt
