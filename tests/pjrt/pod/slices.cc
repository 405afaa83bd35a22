#include "tests/pjrt/pod/slices.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "sluice/pjrt/proto_reader.h"

namespace emulated_pod {
namespace {

using sluice::pjrt::ProtoReader;
using Change = std::function<Result<std::string>(const ProtoReader&)>;

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

// Appends a field as it is, or with other bytes.
void append_field(std::string& out, const ProtoReader& in, std::string_view bytes) {
  const bool fixed = !in.is_bytes() && !in.bytes().empty();
  const unsigned wire = in.is_bytes() ? 2 : !fixed ? 0 : in.bytes().size() == 8 ? 1 : 5;
  append_varint(out, uint64_t{in.field()} << 3 | wire);
  if (wire == 0) return append_varint(out, in.number());
  if (wire == 2) append_varint(out, bytes.size());
  out += bytes;
}

// The message with `change` applied to its sub-messages of this number.
Result<std::string> changed(std::string_view message, unsigned field, const Change& change) {
  std::string out;
  ProtoReader in(message);
  while (in.next()) {
    std::string bytes(in.bytes());
    if (in.field() == field && in.is_bytes()) {
      SLUICE_TRY(bytes, change(in));
    }
    append_field(out, in, bytes);
  }
  return in.broken() ? std::string(message) : out;
}

}  // namespace

int outer_id(const Layout& layout, int slices, int device) {
  const int slice = slice_of_worker(layout, slices, layout.owner(device));
  return kSliceStride * slice + device - layout.first(slice * layout.workers() / slices);
}

// CompileOptionsProto: executable_build_options 3 { device_assignment 9 { computation_devices 3 {
// replica_device_ids 1, packed } } }.
Result<std::string> with_inner_ids(std::string_view compile_options, const Layout& layout, int slices) {
  if (slices == 1) return std::string(compile_options);
  std::vector<int> outer;
  for (int device = 0; device < layout.devices(); ++device) outer.push_back(outer_id(layout, slices, device));
  const Change ids = [&](const ProtoReader& in) -> Result<std::string> {
    std::string out;
    ProtoReader packed(in.bytes());
    while (!packed.at_end()) {
      const auto id = static_cast<int>(packed.varint());
      const auto found = std::find(outer.begin(), outer.end(), id);
      if (found == outer.end())
        return fail(Code::kInvalidArgument, "No matching device found for device_id ", id);
      append_varint(out, static_cast<uint64_t>(found - outer.begin()));
    }
    return out;
  };
  const Change computation = [&](const ProtoReader& in) { return changed(in.bytes(), 1, ids); };
  const Change assignment = [&](const ProtoReader& in) { return changed(in.bytes(), 3, computation); };
  const Change build = [&](const ProtoReader& in) { return changed(in.bytes(), 9, assignment); };
  return changed(compile_options, 3, build);
}

}  // namespace emulated_pod
