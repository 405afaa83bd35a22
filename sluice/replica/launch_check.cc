#include "sluice/replica/launch_check.h"

#include <algorithm>
#include <chrono>
#include <sstream>

#include "sluice/base/error.h"
#include "sluice/base/result.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"
#include "sluice/base/thread.h"
#include "sluice/device/program/lower.h"
#include "sluice/device/program/program.h"
#include "sluice/replica/loss.h"

namespace sluice::replica {
namespace {

constexpr const char* kAsking = "new program";
constexpr const char* kLaunched = "launched ";  // followed by the process's number
// The number of launches that another process may be behind or ahead.
constexpr size_t kRemembered = 1024;
constexpr auto kPause = std::chrono::milliseconds(50);

// Returns one line an operation, the same in every process.
std::string listing(const device::LaunchRecord& launch) {
  std::string text;
  for (uint32_t instance : launch.program->instances) text += device::describe_instance(instance) + "\n";
  if (launch.plan == nullptr) return text;  // replayed: nothing was recorded
  text += "results:";
  for (device::Ref output : launch.plan->outputs) text += base::str(" ", output.node, ".", output.output);
  return text + "\n";
}

// Returns the first difference between the listings.
std::string first_difference(const std::string& mine, const std::string& theirs) {
  auto a = base::split(mine, '\n'), b = base::split(theirs, '\n');
  // The listing of a replayed launch has no results.
  const auto is_results = [](const std::string& line) { return line.starts_with("results:"); };
  if (std::any_of(a.begin(), a.end(), is_results) != std::any_of(b.begin(), b.end(), is_results))
    for (auto* lines : {&a, &b}) std::erase_if(*lines, is_results);
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string left = i < a.size() ? a[i] : "nothing", right = i < b.size() ? b[i] : "nothing";
    if (left != right)
      return base::str("operation ", i, " is ", said(left), " here and ", said(right), " there");
  }
  return "the programs are the same; a run-time number (a learning rate, a random seed) or an earlier launch "
         "differs";
}

std::string refusal(int64_t number, const std::string& here, int other, const std::string& there) {
  return base::str("the processes no longer do the same: launch ", number, " is '", here, "' here and '",
                   said(there), "' in process ", other);
}

}  // namespace

LaunchCheck::LaunchCheck(std::shared_ptr<Processes> processes) : processes_(std::move(processes)) {
  watcher_ = std::thread([this] { watch(); });
}

LaunchCheck::~LaunchCheck() {
  {
    std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  watcher_.join();
}

// Returns "17 1234567890 new step".
std::string LaunchCheck::text(const Launched& launched) {
  return base::str(launched.number, ' ', launched.hash, launched.fresh ? " new " : " known ",
                   launched.boundary);
}

std::optional<LaunchCheck::Launched> LaunchCheck::parse(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  std::istringstream in(*text);
  Launched launched;
  std::string kind;
  if (!(in >> launched.number >> launched.hash >> kind)) return std::nullopt;
  launched.fresh = kind == "new";
  in.get();
  std::getline(in, launched.boundary);
  return launched;
}

void LaunchCheck::operator()(const device::LaunchRecord& launch) {
  const Launched launched{launch.number, launch.hash, launch.fresh, std::string(launch.boundary)};
  std::optional<Launched> asked;
  {
    std::scoped_lock lock(mutex_);
    if (refused_) throw_error(*refused_);
    recent_[launched.number] = launched;
    if (recent_.size() > kRemembered) recent_.erase(recent_.begin());
    const auto found = recent_.find(asked_);
    if (found != recent_.end() && asked_ > compared_) asked = found->second;
  }
  if (launched.fresh) {
    // Processes that launch a known program read these values.
    base::value_or_throw(processes_->put(base::str(kLaunched, processes_->index()), text(launched)));
    base::value_or_throw(processes_->put(kAsking, std::to_string(launched.number)));
    compare(launched, listing(launch));
  } else if (asked) {
    compare(*asked, listing(launch));
  }
}

void LaunchCheck::compare(const Launched& launched, const std::string& operations) {
  compared_ = launched.number;
  const std::string mine = text(launched) + "\n" + operations;
  const auto all = base::value_or_throw(
      processes_->gather(base::str("launch ", launched.number), mine,
                         {base::str("'", launched.boundary, "'"), [&] { return look_at_others(launched); }}));
  for (size_t p = 0; p < all.size(); ++p) {
    const std::string first = all[p].substr(0, all[p].find('\n'));
    const Launched theirs = parse(first).value_or(Launched{});
    if (theirs.hash == launched.hash && theirs.boundary == launched.boundary) continue;
    throw_error(Code::kFailedPrecondition,
                refusal(launched.number, launched.boundary, static_cast<int>(p), theirs.boundary) + ": " +
                    first_difference(operations, all[p].substr(std::min(first.size() + 1, all[p].size()))) +
                    kDoTheSame);
  }
}

base::Status LaunchCheck::look_at_others(const Launched& launched) {
  for (int p = 0; p < processes_->count(); ++p) {
    if (p == processes_->index()) continue;
    SLUICE_TRY(const auto told, processes_->try_get(base::str(kLaunched, p)));
    const auto theirs = parse(told);
    if (!theirs || theirs->number < launched.number || (theirs->number == launched.number && theirs->fresh))
      continue;
    return base::fail(Code::kFailedPrecondition,
                      refusal(launched.number, launched.boundary, p, theirs->boundary),
                      ", a program that is known there", kDoTheSame);
  }
  return {};
}

void LaunchCheck::watch() {
  base::name_thread("sluice-compare");
  std::optional<Launched> said;
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, kPause, [this] { return stopping_; })) {
    lock.unlock();
    const base::Status status = watch_once(said);
    lock.lock();
    if (status) continue;
    // Other calls report a store that cannot be reached.
    if (status.error().code() == Code::kFailedPrecondition) refused_ = status.error();
    return;
  }
}

// Publishes the latest launch, and checks the next process's.
base::Status LaunchCheck::watch_once(std::optional<Launched>& said) {
  std::optional<Launched> latest;
  {
    std::scoped_lock lock(mutex_);
    if (!recent_.empty()) latest = recent_.rbegin()->second;
  }
  if (latest && (!said || said->number != latest->number)) {
    SLUICE_OK(processes_->put(base::str(kLaunched, processes_->index()), text(*latest)));
    said = latest;
  }
  SLUICE_TRY(const auto asked, processes_->try_get(kAsking));
  const int next = (processes_->index() + 1) % processes_->count();
  SLUICE_TRY(const auto told, processes_->try_get(base::str(kLaunched, next)));
  const auto theirs = parse(told);
  std::scoped_lock lock(mutex_);
  if (asked) asked_ = base::number_of<int64_t>(*asked).value_or(asked_);
  if (!theirs) return {};
  const auto mine = recent_.find(theirs->number);
  if (mine == recent_.end() || mine->second.hash == theirs->hash) return {};
  return base::fail(
      Code::kFailedPrecondition, refusal(theirs->number, mine->second.boundary, next, theirs->boundary),
      ": the program, a run-time number (a learning rate, a random seed) or an earlier launch differs",
      kDoTheSame);
}

}  // namespace sluice::replica
