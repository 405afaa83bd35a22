#include "sluice/provision/hunt.h"

#include <algorithm>

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/provision/compute_slices.h"
#include "sluice/provision/quota.h"
#include "sluice/provision/slice_request.h"
#include "sluice/provision/slice_state.h"

namespace sluice::provision {
namespace {

using google::Failure;
using google::Kind;
using google::Outcome;

constexpr double kCreateTimeout = 3600;  // seconds from the request until READY
constexpr double kGrace = 600;           // for a node to become READY although its operation failed

tl::unexpected<Failure> not_ours(const base::Status& status) {
  return google::failed(Kind::kExists, Code::kAlreadyExists, status.error().what());
}

// Returns whether trying elsewhere cannot help.
bool is_final(Kind kind) {
  return kind == Kind::kForbidden || kind == Kind::kApiDisabled || kind == Kind::kCredentials ||
         kind == Kind::kCancelled || kind == Kind::kExists || kind == Kind::kInvalid ||
         kind == Kind::kPassing;  // something may exist that is not visible
}

bool lacks_type(const Failure& failure) {
  return failure.kind == Kind::kInvalid &&
         (std::string(failure.what()).find("AcceleratorType") != std::string::npos ||
          std::string(failure.what()).find("accelerator type") != std::string::npos);
}

}  // namespace

Hunt::Hunt(Cloud& cloud, SliceWish wish, estimate::TpuSlice type, std::vector<std::string> zones)
    : cloud_(cloud),
      wish_(std::move(wish)),
      type_(std::move(type)),
      zones_(std::move(zones)),
      server_deadline_(wish_.mark.expires > 0) {}

base::Status Hunt::ours(const Slice& slice) const {
  SLUICE_OK(may_adopt(slice.mark, wish_.mark.environment,
                      base::str("the TPU slice ", slice.name, " in ", slice.zone)));
  if (slice.type == type_.name) return {};
  return base::fail(Code::kAlreadyExists, different_type(slice, type_.name));
}

Outcome<std::optional<Slice>> Hunt::existing() {
  std::vector<std::string> unreachable;
  GOOGLE_TRY(const std::vector<Slice> slices, list_tpu_slices(cloud_, "-", &unreachable));
  unreachable_.insert(unreachable.begin(), unreachable.end());
  std::optional<Slice> alive;
  for (const Slice& slice : slices) {
    if (slice.name != wish_.name) continue;
    if (const auto status = ours(slice); !status) return not_ours(status);
    if (is_lost(slice.state)) {
      cloud_.say(base::str(slice.name, " in ", slice.zone, " is ", slice.state, why_dead(slice),
                           ": deleting and re-creating it"));
      GOOGLE_OK(delete_slice(cloud_, slice));
    } else if (!alive) {
      alive = slice;
    }
  }
  return alive;
}

Outcome<std::optional<Slice>> Hunt::look(const std::string& zone) {
  std::vector<std::string> silent;
  GOOGLE_TRY(std::vector<Slice> slices, list_tpu_slices(cloud_, zone, &silent));
  for (Slice& slice : slices)
    if (slice.name == wish_.name) return std::optional<Slice>(std::move(slice));
  if (!silent.empty())
    return google::failed(Kind::kPassing, Code::kUnavailable, "the zone ", zone, " does not answer");
  return std::optional<Slice>();
}

Outcome<google::Operation> Hunt::ask(const std::string& zone) {
  google::Tpu tpu = cloud_.tpu();
  if (!needs_queue(wish_))
    return tpu.create_node(zone, wish_.name, node_body(wish_, type_, cloud_.project, zone));
  const bool alpha = wish_.capacity == Capacity::kFlexStart || server_deadline_;
  const auto body = queued_body(wish_, type_, cloud_.project, zone, server_deadline_, cloud_.now());
  auto begun = tpu.create_queued(zone, wish_.name, body, alpha);
  const bool refused = !begun && begun.error().kind == Kind::kInvalid &&
                       std::string(begun.error().what()).find("un_duration") != std::string::npos;
  if (!refused || !server_deadline_ || wish_.capacity == Capacity::kFlexStart) return begun;
  cloud_.say(
      "this project may not give nodes an end of life: the time to live holds by `sluice sweep` and by the "
      "timer on worker 0");
  server_deadline_ = false;
  return ask(zone);
}

Outcome<Slice> Hunt::attempt(const std::string& zone) {
  cloud_.say(base::str("asking for ", wish_.slices > 1 ? base::str(wish_.slices, " × ") : "", type_.name,
                       " (", capacity_name(wish_.capacity), ") in ", zone));
  auto begun = ask(zone);
  if (!begun && begun.error().kind == Kind::kExists) {
    // An earlier try whose answer was lost has created it, or somebody else meanwhile.
    GOOGLE_TRY(const std::optional<Slice> there, look(zone));
    if (!there) return tl::unexpected<Failure>(begun.error());
    if (const auto status = ours(*there); !status) return not_ours(status);
    return watch(zone, std::nullopt);
  }
  if (!begun) return tl::unexpected<Failure>(begun.error());
  if (cloud_.api->dry_run()) {
    Slice slice;
    slice.name = wish_.name;
    slice.zone = zone;
    slice.type = type_.name;
    slice.state = "DRY_RUN";
    slice.mark = wish_.mark;
    slice.capacity = wish_.capacity;
    slice.slices = wish_.slices;
    return slice;
  }
  return watch(zone, *begun);
}

// Returns whether a slice that is only queued has waited long enough: in this zone, or in all.
bool Hunt::waited_enough(const Slice& slice, double since) const {
  const bool overdue = wish_.wait_until > 0 && cloud_.now() >= wish_.wait_until;
  if (overdue && slice.nodes.empty()) return true;
  if (slice.state != "WAITING_FOR_RESOURCES" || zones_.size() < 2) return false;
  return cloud_.api->clock().now() - since >= wish_.zone_wait;
}

// Deletes what exists of a slice that cannot be had in its zone.
tl::unexpected<Failure> Hunt::drop(const Slice& slice, const Failure& why) {
  if (const auto deleted = delete_slice(cloud_, slice); !deleted)
    return tl::unexpected<Failure>(deleted.error());
  return tl::unexpected<Failure>(why);
}

// Judges what a look at the zone found: returns the slice if there is nothing more to wait for, an error if
// there will be none, or nothing yet.
Outcome<std::optional<Slice>> Hunt::judge(const Watched& watched, const std::optional<Slice>& slice) {
  const std::string& zone = watched.zone;
  const double now = cloud_.api->clock().now();
  if (!slice) {
    if (watched.late) return tl::unexpected<Failure>(*watched.late);
    if (!watched.operation)
      return google::failed(Kind::kOther, Code::kAborted, wish_.name, " vanished from ", zone);
  } else if (slice->ready()) {
    if (watched.late)
      cloud_.say(
          base::str("the operation failed (", watched.late->what(), "), but the slice is READY: kept"));
    return slice;
  } else if (is_dead(slice->state)) {
    const bool said = slice->queue && !slice->queue->error.is_null();
    return drop(*slice, said ? google::failure_of_operation(slice->queue->error, "the queue entry in " + zone)
                             : Failure(Kind::kNoCapacity, Code::kResourceExhausted,
                                       base::str("it went to state ", slice->state, " in ", zone)));
  } else if (slice->state == "WAITING_FOR_RESOURCES" && zones_.size() == 1 && wish_.wait_until == 0) {
    return slice;  // it is in the queue: that is what was asked for
  } else if (waited_enough(*slice, watched.since)) {
    return drop(*slice, Failure(Kind::kNoCapacity, Code::kResourceExhausted,
                                base::str("no ", type_.name, " came free in ", zone,
                                          " while its queue entry waited")));
  } else if (watched.late && now - watched.late_since > kGrace) {
    return drop(*slice, *watched.late);
  }
  if (now - watched.since > kCreateTimeout && cloud_.now() >= wish_.wait_until)
    return google::failed(Kind::kCancelled, Code::kDeadlineExceeded, wish_.name, " in ", zone, " is still ",
                          slice ? slice->state : "not there",
                          " after an hour; it was left as it is: sluice tpu wait ", wish_.name,
                          " continues, sluice tpu delete ", wish_.name, " ends it");
  return std::optional<Slice>();
}

// Looks once at the operation; the slice itself is looked at in between.
google::Done Hunt::look_at_operation(Watched& watched) {
  if (!watched.operation) return {};
  google::Wait once = google::default_wait(*cloud_.api);
  once.timeout = once.first;
  const auto done = google::wait(*cloud_.api, *watched.operation, once);
  if (!done && done.error().code() == Code::kDeadlineExceeded) return {};
  watched.operation.reset();
  if (done) return {};
  if (is_final(done.error().kind)) return done;
  watched.late = done.error();
  watched.late_since = cloud_.api->clock().now();
  return {};
}

Outcome<Slice> Hunt::watch(const std::string& zone, std::optional<google::Operation> operation) {
  Watched watched{zone, std::move(operation), cloud_.api->clock().now(), std::nullopt, 0};
  Pause pause(cloud_);
  while (true) {
    GOOGLE_TRY(const std::optional<Slice> slice, look(zone));
    GOOGLE_TRY(const std::optional<Slice> over, judge(watched, slice));
    if (over) return *over;
    GOOGLE_OK(pause.next());
    GOOGLE_OK(look_at_operation(watched));
  }
}

bool Hunt::blocked(const std::string& zone) const {
  return blocked_.count(zone) != 0 || blocked_.count(google::region_of_zone(zone)) != 0;
}

void Hunt::give_up(const std::string& zone, const Failure& failure) {
  cloud_.say(base::str(zone, ": ", failure.what()));
  failures_.insert_or_assign(zone, failure);
  if (failure.kind == Kind::kQuota)
    blocked_.insert(failure.quota.regional ? google::region_of_zone(zone) : zone);
  if (lacks_type(failure)) blocked_.insert(zone);
}

Outcome<Slice> Hunt::round() {
  for (const std::string& zone : zones_) {
    if (blocked(zone)) continue;
    if (unreachable_.count(zone) != 0) {
      // A slice of this name may exist in the zone without being visible: nothing is requested.
      give_up(zone, Failure(Kind::kPassing, Code::kUnavailable, "the zone does not answer"));
      continue;
    }
    auto slice = attempt(zone);
    if (slice) return slice;
    const Failure& failure = slice.error();
    if (is_final(failure.kind) && !lacks_type(failure)) return slice;
    give_up(zone, with_use(cloud_, failure, type_, wish_.capacity));
  }
  return tl::unexpected<Failure>(none_left());
}

Failure Hunt::none_left() const {
  if (failures_.size() == 1) return failures_.begin()->second;
  if (failures_.empty())
    return {Kind::kNotFound, Code::kNotFound, base::str("there is no zone to try for ", type_.name)};
  // Reports the kind that a caller can act on: capacity comes and goes, the rest stays.
  const Failure* first = &failures_.begin()->second;
  std::string all;
  for (const auto& [zone, failure] : failures_) {
    if (failure.kind == Kind::kNoCapacity) first = &failure;
    all += base::str("\n  ", zone, ": ", failure.what());
  }
  Failure failure(first->kind, first->code(),
                  base::str("no zone of ", failures_.size(), " has a ", type_.name, " (",
                            capacity_name(wish_.capacity), ") for this project:", all));
  failure.quota = first->quota;
  return failure;
}

Outcome<Slice> Hunt::run() {
  if (!cloud_.api->dry_run()) {
    GOOGLE_TRY(const std::optional<Slice> there, existing());
    if (there) {
      cloud_.say(base::str(wish_.name, " is there already in ", there->zone, ": ", there->state));
      if (there->ready()) return *there;
      auto slice = watch(there->zone, std::nullopt);
      if (slice || is_final(slice.error().kind)) return slice;
      give_up(there->zone, slice.error());
    }
  }
  double pause = std::min(30.0, cloud_.api->options().http.retry.longest);
  const double longest = 10 * pause;
  while (true) {
    auto slice = round();
    if (slice || is_final(slice.error().kind)) {
      if (!slice && lacks_type(slice.error())) return tl::unexpected<Failure>(with_zones(slice.error()));
      return slice;
    }
    const bool all_blocked =
        std::all_of(zones_.begin(), zones_.end(), [&](const std::string& zone) { return blocked(zone); });
    if (all_blocked || cloud_.now() + pause >= wish_.wait_until) return slice;
    cloud_.say(base::str("no zone has it now; the next round in ", pause, " s"));
    cloud_.api->clock().sleep(pause, cloud_.cancelled);
    if (cloud_.cancelled != nullptr && *cloud_.cancelled)
      return google::failed(Kind::kCancelled, Code::kCancelled, "cancelled");
    pause = std::min(pause * 2, longest);
    unreachable_.clear();
  }
}

Failure Hunt::with_zones(const Failure& failure) {
  const auto zones = zones_with(cloud_, type_.name, nullptr);
  if (!zones) return failure;
  std::string said = failure.what();
  if (base::ends_with(said, ".")) said.pop_back();
  return {failure.kind, failure.code(),
          base::str(said, zones->empty() ? ". No zone of this project has it"
                                         : ". Zones that have it: " + base::join(*zones, ", "))};
}

Outcome<Slice> create_slice(Cloud& cloud, const SliceWish& wish) {
  const double now = cloud.now();
  if (const auto status = check_wish(wish, now); !status)
    return tl::unexpected<Failure>(Failure(status.error()));
  const SliceWish whole = completed(wish, now);
  const auto type = estimate::find_tpu_slice(wish.type);
  std::vector<std::string> zones = wish.zones;
  if (is_compute_type(*type)) return create_compute_slice(cloud, whole, *type);
  if (zones == std::vector<std::string>{"any"}) {
    GOOGLE_TRY(zones, zones_with(cloud, type->name, nullptr));
    if (zones.empty())
      return google::failed(Kind::kInvalid, Code::kInvalidArgument, "no zone of the project ", cloud.project,
                            " has ", type->name);
  }
  return Hunt(cloud, whole, *type, zones).run();
}

}  // namespace sluice::provision
