#include "sluice/device/capture/tape.h"

#include <cstring>

#include "sluice/base/text/join.h"
#include "sluice/device/program/instance.h"
#include "sluice/device/program/trace.h"

namespace sluice::device {
namespace {

std::string in_words(const Origin& owner) {
  return base::str(owner.row == nullptr ? std::string_view("an operation") : owner.row->name,
                   owner.layer != 0 ? base::str(" (layer ", Names::name(owner.layer), ")") : std::string());
}

template <typename Number>
std::string number_difference(const std::vector<Number>& before, const std::vector<Number>& now,
                              const std::vector<Origin>& owners) {
  for (size_t i = 0; i < now.size() && i < before.size(); ++i) {
    // Compared by their bits: NaN equals itself, and 0 differs from -0.
    if (std::memcmp(&before[i], &now[i], sizeof(Number)) == 0) continue;
    return base::str("a number of ", i < owners.size() ? in_words(owners[i]) : "an operation", " is ", now[i],
                     ", was ", before[i]);
  }
  return before.size() == now.size() ? "" : "it has more or fewer run-time numbers";
}

// Describes the first operation in which two programs differ.
std::string program_difference(const Program& before, const Program& now) {
  for (size_t i = 0; i < now.instances.size(); ++i) {
    if (i >= before.instances.size())
      return base::str("operation ", i, " is new: ", describe_instance(now.instances[i]));
    if (now.instances[i] == before.instances[i]) continue;
    return base::str("operation ", i, " is ", describe_instance(now.instances[i]), ", was ",
                     describe_instance(before.instances[i]));
  }
  if (now.instances.size() < before.instances.size())
    return base::str("operation ", now.instances.size(), " and the operations after it are gone: ",
                     describe_instance(before.instances[now.instances.size()]));
  return "the operations are the same; their operands, or what is kept of their results, changed";
}

std::string difference(const CapturedProgram& before, const CapturedProgram& now) {
  if (before.boundary != now.boundary)
    return base::str("the graph is cut by '", now.boundary, "', was by '", before.boundary, "'");
  if (before.program == nullptr && now.program != nullptr) return "a program is new";
  if (before.program != nullptr && now.program == nullptr) return "a program is gone";
  if (before.program != now.program) return program_difference(*before.program, *now.program);
  for (const std::string& found : {number_difference(before.scalars.f32, now.scalars.f32, now.owners[0]),
                                   number_difference(before.scalars.i64, now.scalars.i64, now.owners[1]),
                                   number_difference(before.scalars.f64, now.scalars.f64, now.owners[2])})
    if (!found.empty()) return found;
  if (before.arguments != now.arguments || before.aliases != now.aliases || before.stores != now.stores)
    return "the program is the same, but it reads or writes other tensors";
  if (before.numbers != now.numbers) return "its run-time numbers come from another place";
  for (size_t i = 0; i < now.results.size(); ++i)
    if (before.results[i].sameness != now.results[i].sameness)
      return base::str("a result of ", in_words(now.results[i].made_by),
                       " is equal on other replicas than before");
  return "";
}

bool same(const CapturedPlace& a, const CapturedPlace& b) {
  if (a.kind != b.kind) return false;
  return a.kind != CapturedPlace::Kind::kOutside ||
         (a.address == b.address && a.type == b.type && a.strides == b.strides && a.sameness == b.sameness &&
          a.layout == b.layout && a.keep_equal == b.keep_equal);
}

bool same(const std::optional<at::Generator>& a, const std::optional<at::Generator>& b) {
  return a.has_value() == b.has_value() && (!a || *a == *b);
}

}  // namespace

std::string difference(const Tape& before, const Tape& now) {
  // This comes first: a tape from before the device was closed has no programs any more.
  if (before.opening != now.opening) return "the device was closed and opened again";
  for (size_t i = 0; i < now.programs.size() && i < before.programs.size(); ++i)
    if (auto found = difference(before.programs[i], now.programs[i]); !found.empty()) return found;
  if (before.programs.size() != now.programs.size())
    return base::str("it launches ", now.programs.size(), " programs, launched ", before.programs.size());
  for (size_t i = 0; i < now.places.size() && i < before.places.size(); ++i)
    if (!same(before.places[i], now.places[i]))
      return "it uses another tensor, or the tensor has another type or layout at its start";
  if (before.places.size() != now.places.size() || before.equal != now.equal) return "it uses other tensors";
  if (before.results != now.results) return "the tensors that it returns have other shapes";
  if (before.draws.size() != now.draws.size())
    return base::str("it has ", now.draws.size(), " random operations, had ", before.draws.size());
  for (size_t i = 0; i < now.draws.size(); ++i)
    if (!same(before.draws[i], now.draws[i])) return "a random operation draws from another generator";
  if (before.steps != now.steps) return "an optimizer's step changed";
  if (before.after.size() != now.after.size() || before.guards.size() != now.guards.size())
    return "it makes other calls of the session";
  for (size_t i = 0; i < now.guards.size(); ++i)
    if (before.guards[i].second != now.guards[i].second)
      return "the session was in another state (gradient accumulation)";
  return "";
}

}  // namespace sluice::device
