#include "sluice/provision/remote/slice_view.h"

#include <cmath>
#include <initializer_list>
#include <string_view>

#include "sluice/base/text/join.h"
#include "sluice/provision/slice_state.h"

namespace sluice::provision {
namespace {

bool is_one_of(std::string_view state, std::initializer_list<std::string_view> states) {
  for (const std::string_view other : states)
    if (state == other) return true;
  return false;
}

// A preempted spot machine is shown in any of these states, for a while or for ever.
SliceView::Kind kind_of_node(const SliceStates& states) {
  if (states.node == "READY") {
    if (states.health == "UNHEALTHY_MAINTENANCE") return SliceView::kDown;
    if (is_one_of(states.health, {"TIMEOUT", "UNHEALTHY_TENSORFLOW"})) return SliceView::kUnsteady;
    return is_lost(states.queued) ? SliceView::kDown : SliceView::kUp;
  }
  if (is_one_of(states.node, {"CREATING", "STARTING", "UNHIDING"})) return SliceView::kComing;
  if (is_one_of(states.node, {"RESTARTING", "REIMAGING", "REPAIRING", "UNKNOWN", "STATE_UNSPECIFIED"}))
    return SliceView::kUnsteady;
  return SliceView::kDown;  // PREEMPTED, TERMINATED, STOPPED, STOPPING, DELETING, HIDDEN, HIDING, and new
                            // states
}

SliceView::Kind kind_of_queue(std::string_view queued) {
  if (queued.empty()) return SliceView::kGone;
  return is_one_of(queued, {"CREATING", "ACCEPTED", "PROVISIONING", "WAITING_FOR_RESOURCES"})
             ? SliceView::kComing
             : SliceView::kDown;  // FAILED, SUSPENDED, or ACTIVE although its node has vanished
}

}  // namespace

SliceView view_slice(const SliceStates& states, double now, double notice_seconds) {
  SliceView view;
  if (states.node.empty()) {
    view.kind = kind_of_queue(states.queued);
    view.state = states.queued.empty() ? "gone" : states.queued + " (queued resource)";
    return view;
  }
  view.kind = kind_of_node(states);
  view.state = states.node;
  if (states.node == "READY" && view.kind != SliceView::kUp)
    view.state += view.kind == SliceView::kDown && states.health != "UNHEALTHY_MAINTENANCE"
                      ? ", " + states.queued + " (queued resource)"
                      : ", " + states.health;
  if (view.kind != SliceView::kUp && !states.which.empty()) view.state += " (" + states.which + ")";
  if (states.maintenance > 0 && !states.maintenance_waits && states.maintenance - now <= notice_seconds)
    view.notice = base::str("maintenance begins in ",
                            static_cast<long>(std::max(0.0, std::round(states.maintenance - now))), " s");
  return view;
}

}  // namespace sluice::provision
