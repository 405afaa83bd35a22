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

[[noreturn]] void refuse(int64_t number, int other, const std::string& here, const std::string& there,
                         const std::string& difference) {
  throw Error(
      Code::kFailedPrecondition,
      base::str("the processes no longer do the same: launch ", number, " is ",
                here.substr(here.find(' ') + 1), " here and ", there.substr(there.find(' ') + 1),
                " in process ", other, ": ", difference,
                ". All processes must run the same operations: no .item(), printing or saving of device ",
                "tensors by one of them alone (session.print, session.log_every and the trainer's ",
                "checkpoints are safe)"));
}

}  // namespace

void LaunchCheck::operator()(const device::LaunchRecord& launch) {
  recent_[launch.number] = summary(launch);
  if (recent_.size() > kRemembered) recent_.erase(recent_.begin());
  if (launch.fresh) {
    // Those who launch a known program look here.
    base::value_or_throw(processes_->put(kAsking, std::to_string(launch.number)));
    return compare(launch.number, listing(launch));
  }
  const auto asked = base::value_or_throw(processes_->try_get(kAsking));
  int64_t number = 0;
  if (asked) std::from_chars(asked->data(), asked->data() + asked->size(), number);
  if (number > compared_ && recent_.contains(number)) compare(number, listing(launch));
}

void LaunchCheck::compare(int64_t number, const std::string& operations) {
  compared_ = number;
  const std::string mine = recent_.at(number) + "\n" + operations;
  const auto all = base::value_or_throw(processes_->gather(base::str("launch ", number), mine));
  for (size_t p = 0; p < all.size(); ++p) {
    const std::string here = mine.substr(0, mine.find('\n')), there = all[p].substr(0, all[p].find('\n'));
    if (here != there)
      refuse(number, static_cast<int>(p), here, there,
             first_difference(operations, all[p].substr(there.size() + 1)));
  }
}

}  // namespace sluice::replica
