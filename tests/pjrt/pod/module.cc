#include "sluice/pjrt/proto_reader.h"
#include "tests/pjrt/pod/facts.h"

namespace emulated_pod {
namespace {

using sluice::pjrt::ProtoReader;

constexpr uint64_t kTuple = 13, kBFloat16 = 16;  // of XLA's PrimitiveType

// The two lists of element types agree up to F64.
c::PJRT_Buffer_Type type_of(uint64_t primitive) {
  if (primitive == kBFloat16) return c::kBF16;
  return primitive <= c::kF64 ? static_cast<c::PJRT_Buffer_Type>(primitive) : c::kInvalid;
}

// ShapeProto: element_type 2, dimensions 3, tuple_shapes 4. A tuple gives all its elements.
Status read_shape(std::string_view bytes, std::vector<Shape>& shapes) {
  ProtoReader message(bytes);
  Shape shape;
  uint64_t primitive = 0;
  std::vector<std::string_view> elements;
  while (message.next()) {
    if (message.field() == 2) primitive = message.number();
    if (message.field() == 3 && !message.is_bytes())
      shape.dims.push_back(static_cast<int64_t>(message.number()));
    if (message.field() == 3 && message.is_bytes()) {
      for (ProtoReader packed(message.bytes()); !packed.at_end();)
        shape.dims.push_back(static_cast<int64_t>(packed.varint()));
    }
    if (message.field() == 4) elements.push_back(message.bytes());
  }
  if (primitive == kTuple) {
    for (const std::string_view element : elements) SLUICE_OK(read_shape(element, shapes));
    return {};
  }
  shape.type = type_of(primitive);
  if (message.broken() || shape.type == c::kInvalid) {
    return fail(Code::kUnimplemented, "the emulated pod has no buffers of XLA's element type ", primitive);
  }
  shapes.push_back(std::move(shape));
  return {};
}

// ProgramShapeProto: parameters 1, result 2.
Status read_signature(std::string_view bytes, Facts& facts) {
  ProtoReader signature(bytes);
  while (signature.next()) {
    if (signature.field() == 1) SLUICE_OK(read_shape(signature.bytes(), facts.parameters));
    if (signature.field() == 2) SLUICE_OK(read_shape(signature.bytes(), facts.outputs));
  }
  return {};
}

uint64_t first_number(const ProtoReader& field) {
  return field.is_bytes() ? ProtoReader(field.bytes()).varint() : field.number();
}

// HloInputOutputAliasProto and HloBufferDonorProto: entries 1. `output` is the number of the field with the
// place of the output, 0 for none; `parameter` that of the parameter's number.
void read_donations(std::string_view bytes, unsigned output, unsigned parameter, Facts& facts) {
  ProtoReader entries(bytes);
  while (entries.next()) {
    if (entries.field() != 1) continue;
    ProtoReader entry(entries.bytes());
    uint64_t argument = 0;
    int64_t taken_by = output == 0 ? kConsumed : 0;
    while (entry.next()) {
      if (entry.field() == parameter) argument = entry.number();
      if (output != 0 && entry.field() == output) taken_by = static_cast<int64_t>(first_number(entry));
    }
    if (argument < facts.donation.size()) facts.donation[argument] = taken_by;
  }
}

}  // namespace

// HloModuleProtoWithConfig: hlo_module 1 { name 1, host_program_shape 4, input_output_alias 8, buffer_donor
// 18 }.
Status read_module(std::string_view hlo_with_config, Facts& facts) {
  ProtoReader outer(hlo_with_config);
  std::string_view signature, aliases, donors;
  while (outer.next()) {
    if (outer.field() != 1) continue;
    ProtoReader module(outer.bytes());
    while (module.next()) {
      if (module.field() == 1) facts.name = module.bytes();
      if (module.field() == 4) signature = module.bytes();
      if (module.field() == 8) aliases = module.bytes();
      if (module.field() == 18) donors = module.bytes();
    }
  }
  SLUICE_OK(read_signature(signature, facts));
  facts.donation.assign(facts.parameters.size(), kKept);
  read_donations(donors, 0, 1, facts);
  read_donations(aliases, 1, 2, facts);
  return {};
}

}  // namespace emulated_pod
