#include "sluice/pjrt/program/optimized_program.h"

#include <algorithm>
#include <map>
#include <optional>

#include "sluice/base/text/strings.h"
#include "sluice/pjrt/proto_reader.h"

namespace sluice::pjrt {
namespace {

// The bits of XLA's element types, by number; 0 for what is not an array (a token, an opaque value).
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

struct Instruction {
  uint64_t id = 0;
  std::string_view opcode, shape;
  std::vector<uint64_t> operands;

  bool reads(uint64_t other) const {
    return std::find(operands.begin(), operands.end(), other) != operands.end();
  }
};

struct Computation {
  std::vector<Instruction> instructions;
  uint64_t root = 0;
  bool is_fusion = false;

  const Instruction* find(uint64_t id) const {
    for (const Instruction& one : instructions)
      if (one.id == id) return &one;
    return nullptr;
  }
};

// Reads an HloInstructionProto: opcode 2, shape 3, id 35, operand_ids 36.
Instruction read_instruction(std::string_view bytes, bool& broken) {
  Instruction read;
  ProtoReader message(bytes);
  while (message.next()) {
    if (message.field() == 2) read.opcode = message.bytes();
    if (message.field() == 3) read.shape = message.bytes();
    if (message.field() == 35) read.id = message.number();
    if (message.field() == 36 && !message.is_bytes()) read.operands.push_back(message.number());
    if (message.field() == 36 && message.is_bytes()) {
      for (ProtoReader packed(message.bytes()); !packed.at_end();) read.operands.push_back(packed.varint());
    }
  }
  broken = broken || message.broken();
  return read;
}

// Reads an HloComputationProto: instructions 2, root_id 6, is_fusion_computation 7.
Computation read_computation(std::string_view bytes, bool& broken) {
  Computation read;
  ProtoReader message(bytes);
  while (message.next()) {
    if (message.field() == 2) read.instructions.push_back(read_instruction(message.bytes(), broken));
    if (message.field() == 6) read.root = message.number();
    if (message.field() == 7) read.is_fusion = message.number() != 0;
  }
  broken = broken || message.broken();
  return read;
}

// Returns whether only slices at a replica's place read the value, directly or as a part of a tuple.
bool only_sliced(const Computation& all, uint64_t value) {
  bool sliced = false;
  for (const Instruction& reader : all.instructions) {
    if (!reader.reads(value)) continue;
    if (reader.opcode != "dynamic-slice" &&
        (reader.opcode != "get-tuple-element" || !only_sliced(all, reader.id)))
      return false;
    sliced = true;
  }
  return sliced;
}

// Returns what an all-reduce in the body of a fusion is. libtpu writes a reduce-scatter as an all-reduce of
// which each replica takes a slice, and an all-gather as an all-reduce of zeros with each replica's slice.
std::string kind_in_fusion(const Computation& all, const Instruction& reduce) {
  bool placed = !reduce.operands.empty();
  for (const uint64_t operand : reduce.operands) {
    const Instruction* const maker = all.find(operand);
    placed = placed && maker != nullptr && maker->opcode == "dynamic-update-slice";
  }
  return placed ? "all-gather" : only_sliced(all, reduce.id) ? "reduce-scatter" : "all-reduce";
}

void count_collectives(const Computation& all, std::map<std::string, Collective>& found, bool& broken) {
  for (const Instruction& one : all.instructions) {
    bool asynchronous = false;
    const auto named = kind_of(one.opcode, asynchronous);
    if (!named) continue;
    const std::string kind = all.is_fusion && *named == "all-reduce" ? kind_in_fusion(all, one) : *named;
    const Instruction* const root = kind != *named ? all.find(all.root) : nullptr;
    // The start of a gather or a permutation has its operand and its result as results; the start of an
    // all-reduce has only the result.
    const int only = asynchronous && kind != "all-reduce" ? 1 : -1;
    Collective& collective = found[kind];
    collective.kind = kind;
    ++collective.count;
    collective.bytes +=
        root != nullptr ? bytes_of_shape(root->shape, broken) : bytes_of_shape(one.shape, broken, only);
  }
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
      const Computation computation = read_computation(module.bytes(), broken);
      any = any || !computation.instructions.empty();
      count_collectives(computation, found, broken);
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
