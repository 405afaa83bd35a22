#include "sluice/stablehlo/flops.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "sluice/base/formats/hash.h"
#include "sluice/stablehlo/builder/impl.h"
#include "sluice/stablehlo/composites.h"
#include "sluice/stablehlo/splat.h"

namespace sluice::stablehlo {

Flops& Flops::operator+=(const Flops& other) {
  f64 += other.f64, f32 += other.f32, f16 += other.f16, f8 += other.f8, loops += other.loops;
  causal_f64 += other.causal_f64, causal_f32 += other.causal_f32, causal_f16 += other.causal_f16;
  return *this;
}

Flops Flops::operator-(const Flops& other) const {
  Flops result = *this;
  return result += other.times(-1);
}

Flops Flops::times(double factor) const {
  return {.f64 = f64 * factor,
          .f32 = f32 * factor,
          .f16 = f16 * factor,
          .f8 = f8 * factor,
          .causal_f64 = causal_f64 * factor,
          .causal_f32 = causal_f32 * factor,
          .causal_f16 = causal_f16 * factor,
          .loops = loops * factor};
}

Flops Flops::with_half_of_causal() const {
  Flops result = *this;
  result.f64 -= causal_f64 / 2, result.f32 -= causal_f32 / 2, result.f16 -= causal_f16 / 2;
  result.causal_f64 = result.causal_f32 = result.causal_f16 = 0;
  return result;
}

namespace {

// Returns the number of pairs of a result's place and a kernel's place that meet an element of the input,
// along one dimension.
double meetings(const WindowDim& window, int64_t input, int64_t places) {
  double count = 0;
  const int64_t last = (input - 1) * window.base_dilation;
  for (int64_t k = 0; k < window.size; ++k) {
    // At place p the kernel's element k is at p * stride + offset of the dilated input.
    const int64_t offset = k * window.window_dilation - window.low, stride = window.stride;
    const int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    const int64_t end = offset > last ? 0 : std::min(places, (last - offset) / stride + 1);
    if (window.base_dilation == 1) {
      count += static_cast<double>(std::max<int64_t>(0, end - first));
      continue;
    }
    for (int64_t p = first; p < end; ++p) count += (p * stride + offset) % window.base_dilation == 0 ? 1 : 0;
  }
  return count;
}

double multiplications_of_product(const Operation& op) {
  double count = static_cast<double>(op.results[0].type().numel());
  for (const int64_t dim : op.attributes.list("lhs_contract"))
    count *= static_cast<double>(op.operands[0].dim(dim));
  return count;
}

double multiplications_of_convolution(const Operation& op) {
  // Noted by Builder::convolution.
  const Dims channels = op.attributes.list("channels"), windows = op.attributes.list("windows");
  double count = 1;
  for (const int64_t extent : channels) count *= static_cast<double>(extent);
  constexpr size_t kNumbers = 7;
  for (size_t i = 0; i + kNumbers <= windows.size(); i += kNumbers) {
    const int64_t* const n = &windows[i];
    count *=
        meetings({.size = n[2], .stride = n[3], .low = n[4], .base_dilation = n[5], .window_dilation = n[6]},
                 n[0], n[1]);
  }
  return count;
}

Flops flops_of(DType dtype, double multiplications) {
  // (a + bi)(c + di) takes four products.
  const double flops = 2 * multiplications * (is_complex(dtype) ? 4 : 1);
  Flops result;
  switch (real_dtype(dtype)) {
    case DType::kF64:
      result.f64 = flops;
      break;
    case DType::kF32:
      result.f32 = flops;
      break;
    case DType::kF16:
    case DType::kBF16:
      result.f16 = flops;
      break;
    case DType::kF8E4M3FN:
    case DType::kF8E5M2:
      result.f8 = flops;
      break;
    default:
      break;  // integers do not count
  }
  return result;
}

uint64_t with_text(uint64_t hash, std::string_view text) {
  return base::mix_word(hash, base::hash_text(text));
}

class Counter {
 public:
  ProgramFlops count(const Operations& main, std::span<const Value> results) {
    spread(main);
    mark_live(results);
    ProgramFlops sum;
    for (const Operation* op : operations_) {
      if (!live_.contains(op)) continue;
      const bool fresh = number(*op);
      Flops own = fresh ? cost(*op) : Flops();
      if (own == Flops()) continue;
      if (causal_.contains(op)) own.causal_f64 = own.f64, own.causal_f32 = own.f32, own.causal_f16 = own.f16;
      sum.all += own;
      sum.by_location[op->location] += own;
    }
    return sum;
  }

 private:
  // Lists the operations in their order, with the bodies of composites in place of these.
  void spread(const Operations& from, bool causal = false) {
    for (const auto& op : from) {
      if (op->name == kComposite) {
        spread(op->bodies[0].operations, causal || is_causal_attention(*op));
        continue;
      }
      operations_.push_back(op.get());
      if (causal) causal_.insert(op.get());
    }
  }
  static bool is_causal_attention(const Operation& op) {
    const bool attends =
        op.is_composite(composites::kAttention) || op.is_composite(composites::kAttentionGradient);
    return attends && op.number("causal") != 0;
  }

  void mark_live(std::span<const Value> results) {
    std::unordered_set<int32_t> read;
    for (const Value v : results) read.insert(v.id());
    for (size_t i = operations_.size(); i-- > 0;) {
      const Operation& op = *operations_[i];
      const auto is_read = [&](Value v) { return read.contains(v.id()); };
      if (op.removable && std::none_of(op.results.begin(), op.results.end(), is_read)) continue;
      live_.insert(&op);
      for_operands(op, [&](Value v) { read.insert(v.id()); });
      note_constants(op);
    }
  }

  // Notes the values of constants that are one integer.
  void note_constants(const Operation& op) {
    for (const Block& body : op.bodies)
      for (const auto& inner : body.operations) note_constants(*inner);
    if (op.results.empty() || op.results[0].rank() != 0) return;
    if (const auto value = integer_of(op)) constants_[op.results[0].id()] = *value;
  }

  // Gives equal numbers to the results of operations that make equal values. Returns whether this number is
  // new.
  bool number(const Operation& op) {
    if (op.is("stablehlo.optimization_barrier")) {
      for (size_t i = 0; i < op.results.size(); ++i) numbers_[op.results[i].id()] = number_of(op.operands[i]);
      return false;
    }
    const uint64_t own = op.removable ? hash(op) : base::mix_word(++effects_, 0x9E3779B97F4A7C15u);
    for (size_t i = 0; i < op.results.size(); ++i) numbers_[op.results[i].id()] = base::mix_word(own, i);
    return known_.insert(own).second;
  }

  // Returns the value's number. A parameter's or an argument's number is its place among all values.
  uint64_t number_of(Value v) const {
    const auto found = numbers_.find(v.id());
    return found == numbers_.end() ? static_cast<uint64_t>(v.id()) : found->second;
  }

  uint64_t hash(const Operation& op) {
    uint64_t hash = with_text(with_text(with_text(1, op.name), op.target), op.attributes.text());
    for (const CallAttribute& attribute : op.call) {
      hash = with_text(hash, attribute.name);
      hash = std::visit([&](const auto& value) { return hash_value(hash, value); }, attribute.value);
    }
    for (const Value v : op.operands) hash = base::mix_word(hash, v ? number_of(v) : 0);
    for (const Value v : op.results) {
      hash = base::mix_word(hash, static_cast<uint64_t>(v.dtype()));
      for (const int64_t extent : v.dims()) hash = base::mix_word(hash, static_cast<uint64_t>(extent));
    }
    for (const Block& body : op.bodies) hash = base::mix_word(hash, hash_body(body));
    return hash;
  }

  uint64_t hash_body(const Block& body) {
    uint64_t sum = body.operations.size();
    for (size_t i = 0; i < body.arguments.size(); ++i)
      numbers_[body.arguments[i].id()] = base::mix_word(0xA59u, i);
    for (const auto& op : body.operations) {
      const uint64_t own = hash(*op);
      for (size_t i = 0; i < op->results.size(); ++i) numbers_[op->results[i].id()] = base::mix_word(own, i);
      sum = base::mix_word(sum, own);
    }
    for (const Value v : body.results) sum = base::mix_word(sum, number_of(v));
    return sum;
  }

  template <typename T>
  static uint64_t hash_value(uint64_t hash, const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      return with_text(hash, value);
    } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
      for (const int64_t number : value) hash = base::mix_word(hash, static_cast<uint64_t>(number));
      return base::mix_word(hash, value.size());
    } else {
      return base::mix_word(hash, std::hash<T>()(value));
    }
  }

  // Returns the number of rounds of a loop that counts from 0 to a constant.
  std::optional<int64_t> times_of(const Operation& loop) const {
    const Block &condition = loop.bodies[0], &body = loop.bodies[1];
    const Operation* const below = maker_in(condition, condition.results[0]);
    if (below == nullptr || !below->is("stablehlo.compare") ||
        below->attributes.text().find("comparison_direction LT") == std::string::npos)
      return std::nullopt;
    for (size_t i = 0; i < loop.operands.size(); ++i) {
      if (below->operands[0] != condition.arguments[i]) continue;
      const Operation* const next = maker_in(body, body.results[i]);
      const bool counts = constant(loop.operands[i]) == 0 && next != nullptr && next->is("stablehlo.add") &&
                          next->operands[0] == body.arguments[i] && constant(next->operands[1]) == 1;
      if (counts) return constant(below->operands[1]);
    }
    return std::nullopt;
  }
  static const Operation* maker_in(const Block& block, Value v) {
    for (const auto& op : block.operations)
      if (std::find(op->results.begin(), op->results.end(), v) != op->results.end()) return op.get();
    return nullptr;
  }
  std::optional<int64_t> constant(Value v) const {
    const auto found = constants_.find(v.id());
    return found == constants_.end() ? std::nullopt : std::optional(found->second);
  }

  Flops cost(const Block& body) const {
    Flops sum;
    for (const auto& op : body.operations) sum += cost(*op);
    return sum;
  }

  Flops cost(const Operation& op) const {
    if (op.is("stablehlo.dot_general"))
      return flops_of(op.operands[0].dtype(), multiplications_of_product(op));
    if (op.is("stablehlo.convolution"))
      return flops_of(op.operands[0].dtype(), multiplications_of_convolution(op));
    Flops dearest;
    double loops = 0;  // a branch that is not the most expensive one may be so only without its loops
    for (const Block& body : op.bodies) {
      const Flops one = cost(body);
      loops = std::max(loops, one.loops);
      if (one.sum() > dearest.sum()) dearest = one;
    }
    dearest.loops = loops;
    if (!op.is("stablehlo.while") || dearest == Flops()) return dearest;
    if (const auto times = times_of(op)) return dearest.times(static_cast<double>(*times));
    dearest.loops += 1;
    return dearest;
  }

  std::vector<const Operation*> operations_;  // main's operations
  std::unordered_set<const Operation*> live_;
  std::unordered_set<const Operation*> causal_;     // of causal attention
  std::unordered_map<int32_t, int64_t> constants_;  // [value's id]
  std::unordered_map<int32_t, uint64_t> numbers_;   // [value's id]
  std::unordered_set<uint64_t> known_;
  uint64_t effects_ = 0;
};

}  // namespace

ProgramFlops count_flops(const Operations& main, std::span<const Value> results) {
  return Counter().count(main, results);
}

}  // namespace sluice::stablehlo
