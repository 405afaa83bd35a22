// The choices of TrainOptions: a type for each closed set, with the names of its values in flags, TOML files
// and messages.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/data/mixture.h"
#include "sluice/text/token_batches.h"

SLUICE_API_BEGIN

namespace sluice::train {

enum class DeviceKind { kXla, kCpu };  // kCpu: LibTorch's own CPU, eager
using data::MixBy;
using data::OnError;
using data::Remainder;  // except kKeep: a smaller last batch would be a separate program
enum class OptimizerKind { kSgd, kAdam, kAdamW, kRmsProp, kAdagrad };
// The task to train: images to classes; language models that predict the next token (causal), or hidden
// tokens (masked), or the classes of texts.
enum class Task { kImages, kClm, kMlm, kClassify };
using text::LongDocument;
// The schedules that optimizers/schedule.h computes.
enum class LrSchedule {
  kConstant,
  kStep,
  kCosine,
  kWarmupAndExponentialDecay,
  kLinear,
  kInverseSqrt,
  kWsd,
  kOneCycle
};
enum class Precision { kF32, kBf16 };  // kBf16: products in bf16, weights stay f32
// The reaction to an update whose loss or gradients are NaN or infinite: end the run, or skip the update.
enum class OnNan { kStop, kSkip };
// The processes that print a run's lines: the leader (means over all replicas), or each process its own.
enum class LogWorkers { kLeader, kAll };

template <typename Choice>
struct NamedChoice {
  Choice value;
  const char* name;
};

// The values with their names, in the order in which help and messages list them.
template <typename Choice>
inline constexpr std::array<NamedChoice<Choice>, 0> kChoices{};
template <>
inline constexpr auto kChoices<DeviceKind> =
    std::to_array<NamedChoice<DeviceKind>>({{DeviceKind::kXla, "xla"}, {DeviceKind::kCpu, "cpu"}});
template <>
inline constexpr auto kChoices<OnError> = std::to_array<NamedChoice<OnError>>({{OnError::kStop, "stop"},
                                                                               {OnError::kSkip, "skip"},
                                                                               {OnError::kRetry, "retry"}});
template <>
inline constexpr auto kChoices<Remainder> = std::to_array<NamedChoice<Remainder>>(
    {{Remainder::kDrop, "drop"}, {Remainder::kCarry, "carry"}, {Remainder::kPad, "pad"}});
template <>
inline constexpr auto kChoices<MixBy> = std::to_array<NamedChoice<MixBy>>({{MixBy::kShare, "share"},
                                                                           {MixBy::kRepeat, "repeat"},
                                                                           {MixBy::kChoose, "choose"}});
template <>
inline constexpr auto kChoices<Task> = std::to_array<NamedChoice<Task>>(
    {{Task::kImages, "images"}, {Task::kClm, "clm"}, {Task::kMlm, "mlm"}, {Task::kClassify, "classify"}});
template <>
inline constexpr auto kChoices<LongDocument> = std::to_array<NamedChoice<LongDocument>>(
    {{LongDocument::kError, "error"}, {LongDocument::kCut, "cut"}, {LongDocument::kSplit, "split"}});
template <>
inline constexpr auto kChoices<OptimizerKind> =
    std::to_array<NamedChoice<OptimizerKind>>({{OptimizerKind::kSgd, "sgd"},
                                               {OptimizerKind::kAdam, "adam"},
                                               {OptimizerKind::kAdamW, "adamw"},
                                               {OptimizerKind::kRmsProp, "rmsprop"},
                                               {OptimizerKind::kAdagrad, "adagrad"}});
template <>
inline constexpr auto kChoices<LrSchedule> = std::to_array<NamedChoice<LrSchedule>>(
    {{LrSchedule::kConstant, "constant"},
     {LrSchedule::kStep, "step"},
     {LrSchedule::kCosine, "cosine"},
     {LrSchedule::kLinear, "linear"},
     {LrSchedule::kInverseSqrt, "inverse-sqrt"},
     {LrSchedule::kWsd, "wsd"},
     {LrSchedule::kOneCycle, "one-cycle"},
     {LrSchedule::kWarmupAndExponentialDecay, "WarmupAndExponentialDecay"}});
template <>
inline constexpr auto kChoices<Precision> =
    std::to_array<NamedChoice<Precision>>({{Precision::kF32, "f32"}, {Precision::kBf16, "bf16"}});
template <>
inline constexpr auto kChoices<OnNan> = std::to_array<NamedChoice<OnNan>>({{OnNan::kStop, "stop"},
                                                                           {OnNan::kSkip, "skip"}});
template <>
inline constexpr auto kChoices<LogWorkers> =
    std::to_array<NamedChoice<LogWorkers>>({{LogWorkers::kLeader, "leader"}, {LogWorkers::kAll, "all"}});

template <typename Choice>
std::vector<std::string> choice_names() {
  std::vector<std::string> names;
  for (const auto& choice : kChoices<Choice>) names.emplace_back(choice.name);
  return names;
}

// Returns a value's name, such as "bf16"; "" for a value without one.
template <typename Choice>
std::string name_of(Choice value) {
  for (const auto& choice : kChoices<Choice>)
    if (choice.value == value) return choice.name;
  return "";
}

// Returns the index of `text` in `names`. Throws sluice::Error (kInvalidArgument); the message begins with
// `what`, lists the known names and proposes the nearest one.
std::size_t find_choice(const std::string& what, const std::string& text,
                        const std::vector<std::string>& names);

// Returns the value with the name `text`. Throws as find_choice does.
template <typename Choice>
Choice parse_choice(const std::string& what, const std::string& text) {
  return kChoices<Choice>[find_choice(what, text, choice_names<Choice>())].value;
}

// Throws sluice::Error for a value without a name, such as Remainder::kKeep.
template <typename Choice>
void check_choice(const std::string& what, Choice value) {
  if (name_of(value).empty()) find_choice(what, "another value", choice_names<Choice>());
}

}  // namespace sluice::train

SLUICE_API_END
