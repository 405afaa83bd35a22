#include "sluice/cli/cloud/keep_plan.h"

#include <cstdio>

#include "sluice/base/text/join.h"
#include "sluice/estimate/tpu_slice.h"
#include "sluice/pod/ssh/quote.h"
#include "sluice/provision/compute_slices.h"
#include "sluice/provision/price.h"

namespace sluice::cli {
namespace {

using base::str;
using provision::SliceView;
using provision::SliceWish;

// Says what keep does with an existing TPU.
std::string fate_of(const SliceView& view, const KeepPlan& plan) {
  switch (view.kind) {
    case SliceView::kUp:
      return view.notice.empty() ? "keep takes it as it is"
                                 : view.notice + ", so keep would re-create it at once";
    case SliceView::kComing:
      return "keep waits for it";
    case SliceView::kUnsteady:
      return str("keep waits for it, and re-creates it after ", plan.limits.patience, " s");
    case SliceView::kDown:
    case SliceView::kGone:
      break;
  }
  return "keep deletes and re-creates it";
}

std::string first_line(const KeepPlan& plan) {
  const std::string& name = plan.options.name;
  const auto& [slice, wish, is_recorded] = plan.start;
  const char* const made = is_recorded ? "it is made as an earlier keep has found it:" : "it is made:";
  if (!plan.not_asked.empty()) {
    const std::string head = str("Whether ", name, " is there was not asked: ", plan.not_asked,
                                 ".\nIf it is there, keep takes it as it is, and re-creates it as it was; ");
    return wish ? str(head, "else ", made, "\n")
                : str(head, "else keep ends with an error, as no --type says what to make.\n");
  }
  if (!slice) return str(name, " is not there; ", made, "\n");
  const SliceView view = provision::view_of(*slice, plan.now, plan.options.notice_seconds);
  const std::string line =
      str(name, " is there, in ", slice->zone, ", ", view.state, ": ", fate_of(view, plan), ".\n");
  const auto may = provision::may_adopt(slice->mark, wish->mark.environment, "the TPU " + name);
  return line + (may ? std::string("Re-created, it is:\n")
                     : str("keep ends when the TPU is lost, as it may not delete it: ", may.error().what(),
                           ".\nIt is:\n"));
}

std::string zones_text(const KeepPlan& plan) {
  const std::vector<std::string>& zones = plan.start.wish->zones;
  if (zones != std::vector<std::string>{"any"})
    return base::join(zones, ", ") + (zones.size() > 1 ? " (in this order)" : "");
  if (!plan.not_asked.empty()) return "all that have the type, in the order in which the service lists them";
  if (plan.zones_of_any.empty()) return "any, and none of this project has the type";
  return base::join(plan.zones_of_any, ", ") + " (in this order: all that have the type)";
}

std::string capacity_text(const SliceWish& wish) {
  return str(provision::capacity_name(wish.capacity), wish.reservation.empty() ? "" : " ", wish.reservation);
}

std::string runtime_text(const SliceWish& wish, const base::Result<estimate::TpuSlice>& type) {
  if (!wish.runtime.empty()) return wish.runtime;
  if (type && !type->generation->runtime.empty()) return type->generation->runtime + " (the generation's)";
  return "none: machines of a group need an image, --runtime projects/P/global/images/family/F";
}

// Says after how many hours --max-cost is reached; "" without a limit or a price.
std::string cost_end(const KeepPlan& plan, const std::optional<double>& hourly) {
  if (plan.limits.max_cost <= 0 || !hourly) return "";
  char hours[32];
  std::snprintf(hours, sizeof hours, "%.1f", plan.limits.max_cost / *hourly);
  return str("; --max-cost is reached in ", hours, " h");
}

// Describes the TPU that is created, one line for each fact.
std::string wish_text(const KeepPlan& plan) {
  const SliceWish& wish = *plan.start.wish;
  const auto type = estimate::find_tpu_slice(wish.type);
  const auto hourly = provision::price_of(wish);
  const int hosts = type ? type->hosts * wish.slices : 0;
  return str(
      "  type      ", wish.slices > 1 ? str(wish.slices, " × ") : "", wish.type,
      type ? str(" (", hosts, hosts == 1 ? " host)" : " hosts)") : "", "\n  zones     ", zones_text(plan),
      "\n  capacity  ", capacity_text(wish), "\n  runtime   ", runtime_text(wish, type), "\n  end       ",
      wish.mark.expires > 0 ? google::time_of_seconds(wish.mark.expires) : std::string("none (no --ttl)"),
      "\n  price     ",
      hourly ? str("$", provision::dollars(hourly), " an hour by list prices (", provision::price_date(), ")",
                   cost_end(plan, hourly))
             : std::string("no list price"),
      "\n");
}

// Returns the zone of the first run, or what is known about it.
std::string zone_text(const KeepPlan& plan) {
  if (plan.start.slice) return plan.start.slice->zone;
  if (!plan.options.zone.empty()) return plan.options.zone;
  const bool one = plan.start.wish && plan.start.wish->zones.size() == 1 &&
                   plan.start.wish->zones != std::vector<std::string>{"any"};
  return one ? plan.start.wish->zones.front() : "ZONE";
}

std::string limits_text(const KeepPlan& plan) {
  const provision::KeepLimits& limits = plan.limits;
  return str(
      "keep re-creates it when it is lost (PREEMPTED, TERMINATED, STOPPED, HIDDEN, gone …), "
      "when it is REPAIRING, RESTARTING or UNKNOWN for ",
      limits.patience, " s, ", plan.options.notice_seconds,
      " s before maintenance, and when two runs fail within ", limits.quick,
      " s of their start. A run that fails otherwise starts again on it.\n",
      limits.min_slices > 0 ? str("If some of its slices are lost and at least ", limits.min_slices,
                                  " are left, the run goes on with these.\n")
                            : std::string(),
      "Limits: ", limits.max_restarts, " restarts; ",
      limits.max_cost > 0 ? str("$", provision::dollars(limits.max_cost)) : "no sum (--max-cost)", "; ",
      limits.save, " s from SIGTERM, at which workers save, to SIGKILL; a look at the TPU every ",
      limits.poll, " s.\n");
}

}  // namespace

std::string keep_plan_text(const KeepPlan& plan) {
  return str(first_line(plan), plan.start.wish ? wish_text(plan) : "",
             "Then, with SLUICE_RESTART one higher each time:\n  ",
             pod::quote_all(provision::run_command(plan.options, zone_text(plan), plan.project, 0)), "\n",
             limits_text(plan), "Nothing was made, deleted or changed.\n");
}

}  // namespace sluice::cli
