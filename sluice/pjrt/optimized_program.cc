#include "sluice/pjrt/optimized_program.h"

#include <map>
#include <optional>

#include "sluice/base/strings.h"
#include "sluice/pjrt/proto_reader.h"

namespace sluice::pjrt {
namespace {

// The bits of XLA's element types, by number; 0 for what is no array (a token, an opaque value).
int64_t bits_of(uint64_t element_type) {
  constexpr int kBits[] = {0, 8,   8, 16, 32, 64, 8, 16, 32, 64, 16, 32, 64, 0, 0, 64, 16,
                           0, 128, 8, 8,  4,  4,  8, 8,  8,  2,  2,  8,  8,  1, 1, 4,  8};
  return element_type < std::size(kBits) ? kBits[element_type] : 0;
}

// Reads a ShapeProto: element_type 2, dimensions 3, tuple_shapes 4.
int64_t bytes_of_shape(std::string_view shape, bool& broken, int only_element = -1) {
  ProtoReader message(shape);
  int64_t elements = 1, bits = 0, tuple = 0;
  int element = 0;
  while (message.next()) {
    if (message.field() == 2) bits = bits_of(message.number());
    if (message.field() == 3 && !message.is_bytes()) elements *= static_cast<int64_t>(message.number());
    if (message.field() == 3 && message.is_bytes()) {
      for (ProtoReader packed(message.bytes()); !packed.at_end();)
        elements *= static_cast<int64_t>(packed.varint());
    }
    if (message.field() == 4) {
      if (only_element < 0 || element == only_element) tuple += bytes_of_shape(message.bytes(), broken);
      ++element;
    }
  }
  broken = broken || message.broken();
  return tuple + (elements * bits + 7) / 8;
}

// Returns the kind of collective of an opcode, in its plain form or as the start of an asynchronous one.
std::optional<std::string> kind_of(std::string_view opcode, bool& asynchronous) {
  constexpr std::string_view kStart = "-start";
  asynchronous = base::ends_with(opcode, kStart);
  if (asynchronous) opcode.remove_suffix(kStart.size());
  for (const char* kind : {"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all",
                           "collective-permute", "collective-broadcast"}) {
    if (opcode == kind) return kind;
  }
  return std::nullopt;
}

// Reads an HloInstructionProto: opcode 2, shape 3.
void read_instruction(std::string_view instruction, std::map<std::string, Collective>& found, bool& broken) {
  ProtoReader message(instruction);
  std::string_view opcode, shape;
  while (message.next()) {
    if (message.field() == 2) opcode = message.bytes();
    if (message.field() == 3) shape = message.bytes();
  }
  broken = broken || message.broken();
  bool asynchronous = false;
  const auto kind = kind_of(opcode, asynchronous);
  if (!kind) return;
  // The start of a gather or a permutation has its operand and its result as results; the start of an
  // all-reduce has only the result.
  const int only = asynchronous && *kind != "all-reduce" ? 1 : -1;
  Collective& collective = found[*kind];
  collective.kind = *kind;
  ++collective.count;
  collective.bytes += bytes_of_shape(shape, broken, only);
}

}  // namespace

base::Result<std::vector<Collective>> read_collectives(std::string_view hlo_with_config) {
  std::map<std::string, Collective> found;
  bool broken = false, any = false;
  ProtoReader outer(hlo_with_config);  // hlo_module 1
  while (outer.next()) {
    if (outer.field() != 1) continue;
    ProtoReader module(outer.bytes());  // computations 3
    while (module.next()) {
      if (module.field() != 3) continue;
      ProtoReader computation(module.bytes());  // instructions 2
      while (computation.next()) {
        if (computation.field() != 2) continue;
        any = true;
        read_instruction(computation.bytes(), found, broken);
      }
      broken = broken || computation.broken();
    }
    broken = broken || module.broken();
  }
  if (broken || outer.broken() || !any) {
    return base::fail(Code::kDataLoss, "expected a serialised HloModuleProtoWithConfig of ",
                      hlo_with_config.size(), " bytes, found something else");
  }
  std::vector<Collective> list;
  for (auto& [kind, collective] : found) list.push_back(std::move(collective));
  return list;
}

}  // namespace sluice::pjrt
