// The options of a client, as the real plugins take and refuse them.
#include <algorithm>
#include <map>
#include <string_view>

#include "tests/pjrt/pod/settings.h"

namespace emulated_pod {
namespace {

using Known = std::map<std::string_view, c::PJRT_NamedValue_Type>;
using Given = std::map<std::string_view, const c::PJRT_NamedValue*>;

Result<Given> read_options(const c::PJRT_Client_Create_Args& args, const Known& known) {
  Given given;
  for (size_t i = 0; i < args.num_options; ++i) {
    const c::PJRT_NamedValue& option = args.create_options[i];
    const std::string_view name(option.name, option.name_size);
    const auto found = known.find(name);
    if (found == known.end())
      return fail(Code::kInvalidArgument, "Unexpected option name passed to PJRT_Client_Create: ", name);
    if (found->second != option.type) {
      return fail(Code::kInvalidArgument, "Option passed to PJRT_Client_Create with name ", name,
                  " has type index ", static_cast<int>(option.type), " but expected type index is ",
                  static_cast<int>(found->second));
    }
    given[name] = &option;
  }
  return given;
}

int64_t number(const Given& given, std::string_view name, int64_t otherwise) {
  const auto found = given.find(name);
  return found == given.end() ? otherwise : found->second->int64_value;
}

Status check_allocator(const Given& given) {
  const auto found = given.find("allocator");
  if (found == given.end()) return {};
  const std::string_view name(found->second->string_value, found->second->value_size);
  for (const char* known : {"default", "platform", "bfc", "cuda_async"}) {
    if (name == known) return {};
  }
  return fail(Code::kUnimplemented, "Allocator ", name,
              " not supported for PJRT GPU plugin. Supported allocator ",
              "options are: 'default', 'platform', 'bfc' and 'cuda_async'.");
}

Status check_memory_fraction(const Given& given) {
  const auto found = given.find("memory_fraction");
  if (found == given.end() || (found->second->float_value > 0 && found->second->float_value <= 1)) return {};
  return fail(Code::kInvalidArgument, "memory_fraction is ", found->second->float_value,
              ", expected more than 0 and at most 1");
}

// The devices that this process is to see, of those that its host has.
Status read_visible(const Given& given, Settings& settings) {
  const auto found = given.find("visible_devices");
  if (found == given.end()) return {};
  const int64_t* ids = found->second->int64_array_value;
  settings.hardware_ids.assign(ids, ids + found->second->value_size);
  for (const int id : settings.hardware_ids) {
    if (id >= 0 && id < settings.devices) continue;
    return fail(Code::kInvalidArgument, "visible_devices names device ", id, ", but the host has ",
                settings.devices);
  }
  if (settings.hardware_ids.empty()) return fail(Code::kInvalidArgument, "visible_devices is empty");
  settings.devices = static_cast<int>(settings.hardware_ids.size());
  return {};
}

}  // namespace

Status check_tpu_options(const c::PJRT_Client_Create_Args& args) {
  const auto given = read_options(args, {{"max_inflight_computations", c::kInt64},
                                         {"ml_framework_name", c::kString},
                                         {"ml_framework_version", c::kString}});
  return given ? Status() : tl::unexpected<Error>(given.error());
}

Status read_cuda(const c::PJRT_Client_Create_Args& args, Settings& settings) {
  const Known known = {
      {"allocator", c::kString},         {"memory_fraction", c::kFloat}, {"node_id", c::kInt64},
      {"num_nodes", c::kInt64},          {"platform_name", c::kString},  {"preallocate", c::kBool},
      {"visible_devices", c::kInt64List}};
  SLUICE_TRY(const Given given, read_options(args, known));
  SLUICE_OK(check_allocator(given));
  SLUICE_OK(check_memory_fraction(given));
  SLUICE_OK(read_visible(given, settings));
  const int64_t node = number(given, "node_id", 0), nodes = number(given, "num_nodes", 1);
  if (nodes < 1 || node < 0 || node >= nodes) {
    return fail(Code::kInvalidArgument, "node_id is ", node, " and num_nodes is ", nodes,
                ": expected a node_id from 0 to num_nodes - 1");
  }
  settings.worker = static_cast<int>(node);
  settings.workers = static_cast<int>(nodes);
  return {};
}

}  // namespace emulated_pod
