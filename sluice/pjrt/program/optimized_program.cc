#include "sluice/pjrt/program/optimized_program.h"

#include <algorithm>
#include <map>
#include <optional>

#include "sluice/base/text/lower_case.h"
#include "sluice/base/text/strings.h"
#include "sluice/pjrt/program/device_group.h"
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
  std::string_view opcode, shape, literal, direction, frontend;
  std::string_view all;  // the whole message
  std::vector<uint64_t> operands, called;

  bool reads(uint64_t other) const {
    return std::find(operands.begin(), operands.end(), other) != operands.end();
  }
};

struct Computation {
  std::vector<Instruction> instructions;
  uint64_t id = 0, root = 0;
  bool is_fusion = false;

  const Instruction* find(uint64_t id) const {
    for (const Instruction& one : instructions)
      if (one.id == id) return &one;
    return nullptr;
  }
};

// Adds the numbers of a repeated field, packed or not.
void add_numbers(const ProtoReader& field, std::vector<uint64_t>& numbers) {
  if (!field.is_bytes()) numbers.push_back(field.number());
  for (ProtoReader packed(field.bytes()); !packed.at_end();) numbers.push_back(packed.varint());
}

// Reads an HloInstructionProto: opcode 2, shape 3, literal 8, id 35, operand_ids 36, called_computation_ids
// 38, comparison_direction 63, frontend_attributes 68.
Instruction read_instruction(std::string_view bytes, bool& broken) {
  Instruction read;
  read.all = bytes;
  ProtoReader message(bytes);
  while (message.next()) {
    if (message.field() == 2) read.opcode = message.bytes();
    if (message.field() == 3) read.shape = message.bytes();
    if (message.field() == 8) read.literal = message.bytes();
    if (message.field() == 35) read.id = message.number();
    if (message.field() == 36) add_numbers(message, read.operands);
    if (message.field() == 38) add_numbers(message, read.called);
    if (message.field() == 63) read.direction = message.bytes();
    if (message.field() == 68) read.frontend = message.bytes();
  }
  broken = broken || message.broken();
  return read;
}

// Reads an HloComputationProto: instructions 2, id 5, root_id 6, is_fusion_computation 7.
Computation read_computation(std::string_view bytes, bool& broken) {
  Computation read;
  ProtoReader message(bytes);
  while (message.next()) {
    if (message.field() == 2) read.instructions.push_back(read_instruction(message.bytes(), broken));
    if (message.field() == 5) read.id = message.number();
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

// Returns the kind of an exchange between slices that this instruction receives ("all-reduce"); nullopt for
// another one. Reads a FrontendAttributes message: a map 1 with keys 1 and values 2.
std::optional<std::string> kind_between_slices(const Instruction& one, bool& broken) {
  if (one.opcode != "recv") return std::nullopt;
  std::optional<std::string> kind;
  ProtoReader entries(one.frontend);
  while (entries.next()) {
    std::string_view key, value;
    ProtoReader entry(entries.bytes());
    while (entry.next()) (entry.field() == 1 ? key : value) = entry.bytes();
    broken = broken || entry.broken();
    if (key != "_xla_megascale_transfer_type") continue;
    kind = base::lower_case(value);
    std::replace(kind->begin(), kind->end(), '_', '-');
  }
  broken = broken || entries.broken();
  return kind;
}

using Found = std::map<std::pair<std::string, std::vector<int64_t>>, Collective>;

// Counts an exchange between slices: a device receives its first result.
void count_between_slices(const Instruction& one, const std::string& kind, int64_t times, Found& found,
                          bool& broken) {
  Collective& collective = found[{kind + " between slices", {}}];
  collective.kind = kind;
  collective.between_slices = true;
  collective.count += times;
  collective.bytes += times * bytes_of_shape(one.shape, broken, /*only_element=*/0);
}

// Counts a computation that runs `times` times.
void count_collectives(const Computation& all, int64_t times, Found& found, bool& broken) {
  for (const Instruction& one : all.instructions) {
    if (const auto kind = kind_between_slices(one, broken))
      count_between_slices(one, *kind, times, found, broken);
    bool asynchronous = false;
    const auto named = kind_of(one.opcode, asynchronous);
    if (!named) continue;
    const std::string kind = all.is_fusion && *named == "all-reduce" ? kind_in_fusion(all, one) : *named;
    const Instruction* const root = kind != *named ? all.find(all.root) : nullptr;
    // The start of a gather or a permutation has its operand and its result as results; the start of an
    // all-reduce has only the result.
    const int only = asynchronous && kind != "all-reduce" ? 1 : -1;
    const std::vector<int64_t> group = device_group(one.all, broken);
    Collective& collective = found[{kind, group}];
    collective.kind = kind;
    collective.group = group;
    collective.count += times;
    collective.bytes += times * (root != nullptr ? bytes_of_shape(root->shape, broken)
                                                 : bytes_of_shape(one.shape, broken, only));
  }
}

// Reads a LiteralProto's first whole number, of 32 or 64 bits: s32s 4, s64s 5; nullopt for others.
std::optional<int64_t> number_in(std::string_view literal) {
  ProtoReader message(literal);
  std::vector<uint64_t> numbers;
  while (message.next())
    if (message.field() == 4 || message.field() == 5) add_numbers(message, numbers);
  if (numbers.size() != 1) return std::nullopt;
  return static_cast<int64_t>(numbers.front());
}

// Returns the rounds of a loop with this condition if it runs while a number is below a constant, else 1. All
// loops that Sluice and XLA write count from 0 in steps of 1.
int64_t rounds_of(const Computation& condition) {
  const Instruction* const root = condition.find(condition.root);
  if (root == nullptr || root->opcode != "compare" || root->direction != "LT" || root->operands.size() != 2)
    return 1;
  const Instruction* const limit = condition.find(root->operands[1]);
  if (limit == nullptr || limit->opcode != "constant") return 1;
  return std::max<int64_t>(1, number_in(limit->literal).value_or(1));
}

// Returns how often each computation runs: 1 if nothing calls it. `all` is in the order of the
// message, in which callees come before their callers.
std::vector<int64_t> times_of(const std::vector<Computation>& all) {
  std::map<uint64_t, size_t> place_of;
  for (size_t i = 0; i < all.size(); ++i) place_of[all[i].id] = i;
  std::vector<int64_t> times(all.size(), 0);
  for (size_t i = all.size(); i-- > 0;) {
    times[i] = std::max<int64_t>(times[i], 1);
    for (const Instruction& one : all[i].instructions) {
      int64_t rounds = 1;
      for (const uint64_t called : one.called)
        if (const auto found = place_of.find(called); one.opcode == "while" && found != place_of.end())
          rounds = std::max(rounds, rounds_of(all[found->second]));
      for (const uint64_t called : one.called)
        if (const auto found = place_of.find(called); found != place_of.end() && found->second < i)
          times[found->second] += times[i] * rounds;
    }
  }
  return times;
}

}  // namespace

base::Result<std::vector<Collective>> read_collectives(std::string_view hlo_with_config) {
  std::vector<Computation> computations;
  bool broken = false, any = false;
  ProtoReader outer(hlo_with_config);  // hlo_module 1
  while (outer.next()) {
    if (outer.field() != 1) continue;
    ProtoReader module(outer.bytes());  // computations 3
    while (module.next()) {
      if (module.field() != 3) continue;
      computations.push_back(read_computation(module.bytes(), broken));
      any = any || !computations.back().instructions.empty();
    }
    broken = broken || module.broken();
  }
  Found found;
  const std::vector<int64_t> times = times_of(computations);
  for (size_t i = 0; i < computations.size(); ++i)
    count_collectives(computations[i], times[i], found, broken);
  if (broken || outer.broken() || !any) {
    return base::fail(Code::kDataLoss, "expected a serialised HloModuleProtoWithConfig of ",
                      hlo_with_config.size(), " bytes, found something else");
  }
  std::vector<Collective> list;
  for (auto& [key, collective] : found) list.push_back(std::move(collective));
  return list;
}

}  // namespace sluice::pjrt
