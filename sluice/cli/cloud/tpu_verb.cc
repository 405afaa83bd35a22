// sluice tpu: list, show, wait, start, stop, delete, types, quota.
#include <cstdio>
#include <memory>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/table.h"
#include "sluice/cli/cloud/common.h"
#include "sluice/cli/cloud/tpu_remote_verbs.h"
#include "sluice/cli/cloud/tpu_verbs.h"
#include "sluice/cli/verbs.h"
#include "sluice/provision/compute_slices.h"
#include "sluice/provision/environment/settings.h"
#include "sluice/provision/price.h"
#include "sluice/provision/quota.h"

namespace sluice::cli {
namespace {

struct OneFlags {
  CloudFlags cloud;
  std::string name, env, type, region;
  double timeout = 3600;
};

// Adds NAME, --zone, --project and a verb's own rows.
void one_slice(CLI::App& app, OneFlags& flags, const std::vector<Flag>& more) {
  add_flags(app, {Flag{"", "NAME", &flags.name, "", "The slice's name"}.required(), zone_row(flags.cloud),
                  project_row(flags.cloud)});
  add_flags(app, more);
}

Flag env_row(OneFlags& flags) {
  return {"", "--env", &flags.env, "", "The environment that it belongs to; default: its own"};
}

provision::Slice found(CloudSession& session, const OneFlags& flags) {
  return value_or_fail(provision::find_slice(session.cloud(), flags.name, flags.cloud.zone));
}

int show_one(CloudSession& session, const provision::Slice& slice, bool json) {
  const auto thing = provision::thing_of(slice, session.cloud().project, session.cloud().now());
  if (json) {
    google::Json document = json_of(thing);
    for (const google::Node& node : slice.nodes) document["nodes"].push_back(node.json);
    if (slice.queue) document["queue_entry"] = slice.queue->json;
    print_document(document);
    return 0;
  }
  base::print_table(rows_of({thing}, false));
  for (const google::Node& node : slice.nodes) {
    print_line(base::str(node.id, ": ", node.state, ", ", node.runtime, node.health.empty() ? "" : ", ",
                         node.health));
    for (const std::string& symptom : node.symptoms) print_line("  symptom " + symptom);
    const std::string maintenance = google::text(node.json, "upcomingMaintenance.windowStartTime");
    if (!maintenance.empty()) print_line("  maintenance from " + maintenance);
  }
  if (slice.queue) print_line(base::str("queue entry ", slice.queue->id, ": ", slice.queue->state));
  const auto hosts = slice.hosts();
  for (std::size_t i = 0; i < hosts.size(); ++i)
    print_line(base::str("worker ", i, ": ", hosts[i].internal_ip, hosts[i].external_ip.empty() ? "" : ", ",
                         hosts[i].external_ip));
  say_price_note();
  return 0;
}

// Throws Error unless the slice belongs to the environment of --env, or without it to its own, `tpu-NAME`.
void check_ours(const provision::Slice& slice, const OneFlags& flags) {
  const std::string own = provision::label_value("tpu-" + slice.name);
  const auto status = provision::may_adopt(slice.mark, flags.env.empty() ? own : flags.env,
                                           base::str("the TPU slice ", slice.name, " in ", slice.zone));
  if (status) return;
  if (slice.mark)
    throw_error(
        Code::kFailedPrecondition,
        base::str(slice.name, " in ", slice.zone, " belongs to the environment ", slice.mark->environment,
                  slice.mark->owner.empty() ? "" : " of " + slice.mark->owner, ": say --env ",
                  slice.mark->environment));
  throw_error(
      Code::kFailedPrecondition,
      base::str(slice.name, " in ", slice.zone,
                " was not made by Sluice: delete or stop it where it was made (gcloud compute tpus tpu-vm)"));
}

// Without --project, uses the project of sluice-env.toml in this folder, as `sluice env` does.
void take_project_of_environment(CloudFlags& flags) {
  if (!flags.projects.empty() || !base::path_exists(provision::kSettingsFile)) return;
  const auto settings = provision::read_settings(provision::kSettingsFile, {.read = false, .allowed = {}});
  if (!settings || !provision::check_project_id(settings->project)) return;
  flags.projects = {settings->project};
  std::fprintf(stderr, "The project is %s, as %s here says.\n", settings->project.c_str(),
               provision::kSettingsFile);
}

Verb list_verb() {
  auto flags = std::make_shared<CloudFlags>();
  const auto run = [flags] {
    take_project_of_environment(*flags);
    CloudSession session(*flags);
    provision::Inventory all;
    for (provision::Cloud& cloud : session.clouds()) {
      auto one = value_or_fail(provision::take_inventory(cloud, /*all=*/false));
      std::move(one.things.begin(), one.things.end(), std::back_inserter(all.things));
      all.gaps.add(one.gaps);
    }
    if (flags->json) {
      google::Json document = {{"slices", google::Json::array()}, {"unreachable", all.gaps.unreachable}};
      for (const auto& thing : all.things) document["slices"].push_back(json_of(thing));
      print_document(document);
      return say_unreachable(all.gaps.unreachable);
    }
    if (all.things.empty() && all.gaps.unreachable.empty()) {
      std::printf("No TPU slices.\n");
    } else if (!all.things.empty()) {
      base::print_table(rows_of(all.things, false));
      say_price_note();
    }
    std::fflush(stdout);
    return say_unreachable(all.gaps.unreachable);
  };
  return {.name = "list",
          .help = "All TPU slices and queue entries, in all zones, whoever made them, and what they cost",
          .footer =
              "Exit status 1 when a zone did not answer: something there may be missing. Without --project, "
              "a file sluice-env.toml in the current folder says the project.",
          .add_flags =
              [flags](CLI::App& app) {
                add_flags(app, {project_row(*flags, /*several=*/true), json_row(*flags)});
              },
          .run = [run] { return guard_interrupt(run); }};
}

Verb show_verb() {
  auto flags = std::make_shared<OneFlags>();
  return {.name = "show",
          .help = "One slice: its hosts, health and costs",
          .add_flags = [flags](CLI::App& app) { one_slice(app, *flags, {json_row(flags->cloud)}); },
          .run =
              [flags] {
                CloudSession session(flags->cloud);
                return show_one(session, found(session, *flags), flags->cloud.json);
              }};
}

Verb wait_verb() {
  auto flags = std::make_shared<OneFlags>();
  return {.name = "wait",
          .help = "Wait until a slice is READY",
          .add_flags =
              [flags](CLI::App& app) {
                one_slice(app, *flags,
                          {Flag{"", "--timeout", &flags->timeout, "s", "Wait at most this long"}.above_zero(),
                           json_row(flags->cloud)});
              },
          .run =
              [flags] {
                return guard_interrupt([&] {
                  CloudSession session(flags->cloud);
                  const auto slice = value_or_fail(provision::wait_for_slice(
                      session.cloud(), flags->name, flags->cloud.zone, flags->timeout));
                  return show_one(session, slice, flags->cloud.json);
                });
              }};
}

// Makes the verbs start and stop.
Verb switch_verb(const std::string& name, const std::string& help,
                 google::Done (*act)(provision::Cloud&, const provision::Slice&)) {
  auto flags = std::make_shared<OneFlags>();
  const auto run = [flags, act] {
    CloudSession session(flags->cloud);
    const provision::Slice slice = found(session, *flags);
    check_ours(slice, *flags);
    value_or_fail(act(session.cloud(), slice));
    if (flags->cloud.dry_run) return 0;
    print_line(base::str(slice.name, " is ", found(session, *flags).state));
    return 0;
  };
  return {.name = name,
          .help = help,
          .add_flags =
              [flags](CLI::App& app) {
                one_slice(app, *flags, {env_row(*flags), dry_run_row(flags->cloud)});
              },
          .run = [run] { return guard_interrupt(run); }};
}

int delete_slices(const OneFlags& flags) {
  CloudSession session(flags.cloud);
  auto slice = provision::find_slice(session.cloud(), flags.name, flags.cloud.zone);
  if (!slice && slice.error().kind == google::Kind::kNotFound &&
      std::string(slice.error().what()).find("did not answer") == std::string::npos) {
    const std::string own = provision::label_value("tpu-" + flags.name);
    value_or_fail(
        provision::delete_compute_remains(session.cloud(), flags.name, flags.env.empty() ? own : flags.env));
    std::printf("There is no TPU slice %s: nothing to delete.\n", flags.name.c_str());
    return 0;
  }
  if (!slice) throw_failure(slice.error());
  check_ours(*slice, flags);
  const std::string what = base::str("Deletes ", slice->type, " ", slice->name, " (", slice->state, ") in ",
                                     slice->zone, ", and the disks of its hosts.");
  if (!confirmed(flags.cloud, what)) return 1;
  value_or_fail(provision::delete_slice(session.cloud(), *slice));
  if (!flags.cloud.dry_run) std::printf("%s in %s is deleted.\n", slice->name.c_str(), slice->zone.c_str());
  return 0;
}

Verb delete_verb() {
  auto flags = std::make_shared<OneFlags>();
  return {.name = "delete",
          .help = "Delete a slice and its queue entry",
          .add_flags =
              [flags](CLI::App& app) {
                one_slice(app, *flags, {env_row(*flags), yes_row(flags->cloud), dry_run_row(flags->cloud)});
              },
          .run = [flags] { return guard_interrupt([&] { return delete_slices(*flags); }); }};
}

google::Json row_of_type(const std::string& name) {
  const auto slice = estimate::find_tpu_slice(name);
  if (!slice) return nullptr;
  const auto price = [&](bool spot) {
    const auto dollars = provision::tpu_price(name, spot);
    return dollars ? google::Json(*dollars) : google::Json();
  };
  return {{"type", name},
          {"chips", slice->chips},
          {"hosts", slice->hosts},
          {"memory_gib", slice->chips * slice->generation->memory_gib},
          {"on_demand", price(false)},
          {"spot", price(true)},
          {"runtime", slice->generation->runtime}};
}

void print_types(const std::vector<google::Json>& types) {
  const auto dollars = [](const google::Json& price) {
    return price.is_null() ? "?" : provision::dollars(price.get<double>());
  };
  std::vector<std::vector<std::string>> rows = {
      {"TYPE", "CHIPS", "HOSTS", "GIB", "$/H", "SPOT $/H", "RUNTIME"}};
  for (const google::Json& type : types)
    rows.push_back({type["type"], base::str(type["chips"].get<int>()), base::str(type["hosts"].get<int>()),
                    base::str(type["memory_gib"].get<double>()), dollars(type["on_demand"]),
                    dollars(type["spot"]),
                    google::text(type, "runtime").empty() ? "(an image)" : google::text(type, "runtime")});
  base::print_table(rows);
  say_price_note();
}

// Prints, without flags, the table that the program has; with a zone, the types that Google offers there;
// with a type, the zones that have it.
int types(const OneFlags& flags) {
  if (!flags.type.empty()) {
    const auto slice = value_or_usage(estimate::find_tpu_slice(flags.type));
    CloudSession session(flags.cloud);
    std::vector<std::string> unreachable;
    const auto zones = value_or_fail(provision::zones_with(session.cloud(), slice.name, &unreachable));
    if (flags.cloud.json) {
      print_document({{"type", slice.name}, {"zones", zones}, {"unreachable", unreachable}});
    } else {
      for (const std::string& zone : zones) print_line(zone);
    }
    return say_unreachable(unreachable);
  }
  std::vector<std::string> names = estimate::tpu_slice_names();
  if (!flags.cloud.zone.empty()) {
    CloudSession session(flags.cloud);
    names = value_or_fail(session.cloud().tpu().accelerator_types(flags.cloud.zone));
  }
  std::vector<google::Json> rows;
  for (const std::string& name : names)
    if (const google::Json row = row_of_type(name); !row.is_null()) rows.push_back(row);
  if (flags.cloud.json) {
    print_document(rows);
  } else {
    print_types(rows);
  }
  return 0;
}

Verb types_verb() {
  auto flags = std::make_shared<OneFlags>();
  return {.name = "types",
          .help = "Slice types with chips, hosts, memory and list price",
          .add_flags =
              [flags](CLI::App& app) {
                add_flags(app, {{"", "TYPE", &flags->type, "", "The zones that have this type"},
                                {"", "--zone", &flags->cloud.zone, "", "Only what this zone has"},
                                project_row(flags->cloud),
                                json_row(flags->cloud)});
              },
          .run = [flags] { return guard_interrupt([&] { return types(*flags); }); }};
}

int quotas(const OneFlags& flags) {
  CloudSession session(flags.cloud);
  provision::Cloud& cloud = session.cloud();
  std::vector<std::string> unreachable;
  const auto slices = value_or_fail(provision::list_slices(cloud, &unreachable));
  google::Json document = google::Json::array();
  std::vector<std::vector<std::string>> rows = {{"QUOTA", "PLACE", "LIMIT", "USED"}};
  for (const google::Quota& quota : value_or_fail(provision::tpu_quotas(cloud, slices))) {
    // Most places allow no chips of most generations.
    if (quota.limit == 0 && quota.used == 0) continue;
    if (!flags.region.empty() && quota.place.rfind(flags.region, 0) != 0) continue;
    rows.push_back({quota.name, quota.place, base::str(quota.limit), base::str(quota.used)});
    document.push_back(
        {{"quota", quota.name}, {"place", quota.place}, {"limit", quota.limit}, {"used", quota.used}});
  }
  if (flags.cloud.json) {
    print_document(document);
  } else {
    base::print_table(rows);
  }
  return say_unreachable(unreachable);
}

Verb quota_verb() {
  auto flags = std::make_shared<OneFlags>();
  return {.name = "quota",
          .help = "How many cores or chips the project may have, by region and zone, and has",
          .add_flags =
              [flags](CLI::App& app) {
                add_flags(app, {{"", "--region", &flags->region, "", "Only of this region"},
                                project_row(flags->cloud),
                                json_row(flags->cloud)});
              },
          .run = [flags] { return guard_interrupt([&] { return quotas(*flags); }); }};
}

}  // namespace

Verb tpu_verb() {
  std::vector<Verb> verbs = {
      tpu_create_verb(),
      list_verb(),
      show_verb(),
      wait_verb(),
      switch_verb("start", "Start a slice that was stopped", provision::start_slice),
      switch_verb("stop", "Stop a slice of one host: it keeps its disk", provision::stop_slice),
      delete_verb(),
      types_verb(),
      quota_verb()};
  for (Verb& verb : tpu_remote_verbs()) verbs.push_back(std::move(verb));
  return {.name = "tpu",
          .help = "Make, list and delete TPU slices in Google's cloud, and work on their hosts",
          .verbs = std::move(verbs)};
}

}  // namespace sluice::cli
