#include "sluice/replica/launch_check.h"

#include <charconv>

#include "sluice/base/error.h"
#include "sluice/base/result.h"
#include "sluice/base/strings.h"
#include "sluice/device/lower.h"
#include "sluice/device/trace.h"

namespace sluice::replica {
namespace {

constexpr const char* kAsking = "new program";
constexpr const char* kLaunched = "launched ";  // and the process's number
// So many launches may another process be behind or ahead.
constexpr size_t kRemembered = 64;

std::string summary(const device::LaunchRecord& launch) {
  return base::str(launch.hash, " '", launch.boundary, "'");
}

// One line an operation, the same in every process.
std::string listing(const device::LaunchRecord& launch) {
  std::string text;
  for (uint32_t node : launch.plan->nodes) {
    const device::Instance& instance = *launch.trace->nodes[node].instance;
    text += device::describe(instance) + "\n";
  }
  text += "results:";
  for (device::Ref output : launch.plan->outputs) text += base::str(" ", output.node, ".", output.output);
  return text + "\n";
}

// What is first in which the listings differ.
std::string first_difference(const std::string& mine, const std::string& theirs) {
  const auto a = base::split(mine, '\n'), b = base::split(theirs, '\n');
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string left = i < a.size() ? a[i] : "nothing", right = i < b.size() ? b[i] : "nothing";
    if (left != right) return base::str("operation ", i, " is ", left, " here and ", right, " there");
  }
  return "the programs are the same; a run-time number (a learning rate, a random seed) or an earlier launch "
         "differs";
}

// The launch's boundary, in quotes.
std::string boundary_in(const std::string& summary) { return summary.substr(summary.find(' ') + 1); }

int64_t number_in(const std::string& text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string refusal(int64_t number, const std::string& here, int other, const std::string& there) {
  return base::str("the processes no longer do the same: launch ", number, " is ", here, " here and ", there,
                   " in process ", other);
}

}  // namespace

void LaunchCheck::operator()(const device::LaunchRecord& launch) {
  recent_[launch.number] = summary(launch);
  if (recent_.size() > kRemembered) recent_.erase(recent_.begin());
  base::value_or_throw(
      processes_->put(base::str(kLaunched, processes_->index()),
                      base::str(launch.number, launch.fresh ? " new " : " known ", launch.boundary)));
  if (launch.fresh) {
    // Those who launch a known program look here.
    base::value_or_throw(processes_->put(kAsking, std::to_string(launch.number)));
    return compare(launch.number, listing(launch));
  }
  const auto asked = base::value_or_throw(processes_->try_get(kAsking));
  const int64_t number = asked ? number_in(*asked) : 0;
  if (number > compared_ && recent_.contains(number)) compare(number, listing(launch));
}

void LaunchCheck::compare(int64_t number, const std::string& operations) {
  compared_ = number;
  const std::string mine = recent_.at(number) + "\n" + operations;
  const auto all = base::value_or_throw(processes_->gather(
      base::str("launch ", number), mine,
      {boundary_in(recent_.at(number)), [this, number] { return look_at_others(number); }}));
  for (size_t p = 0; p < all.size(); ++p) {
    const std::string here = mine.substr(0, mine.find('\n')), there = all[p].substr(0, all[p].find('\n'));
    if (here == there) continue;
    throw Error(Code::kFailedPrecondition,
                refusal(number, boundary_in(here), static_cast<int>(p), boundary_in(there)) + ": " +
                    first_difference(operations, all[p].substr(there.size() + 1)) + kDoTheSame);
  }
}

base::Status LaunchCheck::look_at_others(int64_t number) {
  for (int p = 0; p < processes_->count(); ++p) {
    SLUICE_TRY(const auto launched, processes_->try_get(base::str(kLaunched, p)));
    if (p == processes_->index() || !launched) continue;
    const int64_t theirs = number_in(*launched);
    const bool known = launched->find(" known ") != std::string::npos;
    if (theirs < number || (theirs == number && !known)) continue;
    return base::fail(
        Code::kFailedPrecondition,
        refusal(
            number, boundary_in(recent_.at(number)), p,
            base::str("'", launched->substr(launched->rfind(known ? " known " : " new ") + (known ? 7 : 5)),
                      "'")),
        ", a program that is known there", kDoTheSame);
  }
  return {};
}

}  // namespace sluice::replica
