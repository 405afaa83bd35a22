// sluice tpu create
#include <cstdio>
#include <memory>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/cli/cloud/common.h"
#include "sluice/cli/cloud/tpu_verbs.h"
#include "sluice/provision/price.h"

namespace sluice::cli {
namespace {

constexpr char kStartupScript[] = "--startup-script";

struct CreateFlags {
  CloudFlags cloud;
  provision::SliceWish wish;
  bool spot = false, on_demand = false, internal = false;
  std::string flex, wait_until, ttl, idle, script, env, owner;
  std::vector<std::string> labels;
};

// clang-format off
std::vector<Flag> create_rows(CreateFlags& f) {
  return {
      Flag{"", "NAME", &f.wish.name, "", "The slice's name"}.required(),
      Flag{"", "--type", &f.wish.type, "", "v3-32, v5litepod-16 …: sluice tpu types lists them"}.required(),
      Flag{"", "--zones", TextList{&f.wish.zones}, "", "Zones in the order to try them, a,b; any: all that have the type"}
          .required(),
      Flag{"", "--slices", &f.wish.slices, "", "Make N slices that train together", {1, 256}},
      Flag{"", "--runtime", &f.wish.runtime, "", "Software version; default: the generation's. Of tpu7x the machines' image"},
      Flag{"", kStartupScript, &f.script, "", "A file that each host runs when it starts"},
      Flag{"", "--network", &f.wish.network, "", "Network; default: the project's default one"},
      Flag{"", "--subnetwork", &f.wish.subnetwork, "", "Subnetwork"},
      Flag{"", "--internal-ips", &f.internal, "", "The hosts have no external addresses"},
      Flag{"", "--service-account", &f.wish.service_account, "", "Whom the hosts act as; default: the project's"},
      Flag{"", "--tags", TextList{&f.wish.tags}, "", "Network tags, a,b"},
      Flag{"", "--label", RepeatedText{&f.labels}, "", "NAME=VALUE; repeatable"},
      Flag{"Capacity", "--spot", &f.spot, "", "Use spot capacity: cheap, and Google may take it back at any time"},
      Flag{"Capacity", "--on-demand", &f.on_demand, "", "Pay the list price, if there is capacity (the default)"},
      Flag{"Capacity", "--reservation", &f.wish.reservation, "", "Use the capacity of this reservation"},
      Flag{"Capacity", "--flex-start", &f.flex, "", "Wait in the queue, then use it for this time, such as 12h; at most 7d"},
      Flag{"", "--queued", &f.wish.queued, "", "Make a queue entry, which Google keeps, even where a node would do"},
      Flag{"", "--wait-until", &f.wait_until, "", "Hunt and queue until then: a span (6h) or a time; default: each zone is asked once"},
      Flag{"", "--zone-wait", &f.wish.zone_wait, "s", "Let a queue entry wait this long in one zone while others are left to try"}
          .zero_or_more(),
      Flag{"", "--ttl", &f.ttl, "", "It is deleted then: a span (8h) or a time (2026-11-26T08:00:00Z); Google holds it, no client"},
      Flag{"", "--idle", &f.idle, "", "Let worker 0 delete it when it was not used for this long, such as 30m. Needs tpu.nodes.delete for the service account; sluice tpu guard says whether it has it"},
      Flag{"", "--max-cost", &f.wish.max_cost, "$", "Ask for nothing that costs more until --ttl by list prices"}
          .above_zero(),
      Flag{"", "--env", &f.env, "", "The environment that it belongs to; default: tpu-NAME, its own"},
      Flag{"", "--owner", &f.owner, "", "Who pays attention to it; default: the user here"},
      project_row(f.cloud), dry_run_row(f.cloud), json_row(f.cloud),
  };
}
// clang-format on

// Throws Usage if the flags ask for two kinds of capacity.
void check_capacity_flags(const CreateFlags& flags) {
  std::vector<std::string> given;
  if (flags.spot) given.emplace_back("--spot");
  if (flags.on_demand) given.emplace_back("--on-demand");
  if (!flags.wish.reservation.empty()) given.emplace_back("--reservation");
  if (!flags.flex.empty()) given.emplace_back("--flex-start");
  if (given.size() > 1)
    throw Usage(base::str(base::join(given, " and "), ": a slice is of one kind, give one of them"));
}

// Returns the TPU that the flags describe together. Throws Usage.
provision::SliceWish wish_of(const CreateFlags& flags, double now) {
  provision::SliceWish wish = flags.wish;
  check_capacity_flags(flags);
  if (flags.spot) wish.capacity = provision::Capacity::kSpot;
  if (!wish.reservation.empty()) wish.capacity = provision::Capacity::kReservation;
  if (!flags.flex.empty()) {
    wish.capacity = provision::Capacity::kFlexStart;
    wish.flex_duration = value_or_usage(base::parse_span(flags.flex, "--flex-start"));
  }
  if (!flags.ttl.empty())
    wish.mark.expires = value_or_usage(provision::parse_expiry(flags.ttl, now, "--ttl"));
  if (!flags.idle.empty()) wish.idle = value_or_usage(base::parse_span(flags.idle, "--idle"));
  if (!flags.wait_until.empty())
    wish.wait_until = value_or_usage(provision::parse_expiry(flags.wait_until, now, "--wait-until"));
  wish.external_ips = !flags.internal;
  for (const auto& [value, flag] : {std::pair{flags.env, "--env"}, std::pair{flags.owner, "--owner"}})
    if (provision::label_value(value) != value)
      throw Usage(base::str(flag, " ", value, ": lower-case letters, digits, - and _, at most 63 of them"));
  wish.mark.environment = flags.env;
  wish.mark.owner = flags.owner;
  for (const std::string& label : flags.labels) {
    const auto equals = label.find('=');
    if (equals == std::string::npos) throw Usage("--label " + label + ": expected NAME=VALUE");
    wish.labels[label.substr(0, equals)] = label.substr(equals + 1);
  }
  if (!flags.script.empty()) wish.startup_script = base::value_or_throw(base::read_file(flags.script));
  if (const auto status = provision::check_wish(wish, now); !status) {
    if (status.error().code() == Code::kInvalidArgument) throw Usage(status.error().what());
    throw_error(status.error());
  }
  return wish;
}

int create(const CreateFlags& flags) {
  const provision::SliceWish wish = wish_of(flags, base::wall_seconds());
  CloudSession session(flags.cloud);
  const auto slice = value_or_fail(provision::create_slice(session.cloud(), wish));
  if (flags.cloud.dry_run) return 0;
  const auto thing = provision::thing_of(slice, session.cloud().project, session.cloud().now());
  if (flags.cloud.json) {
    print_document(json_of(thing));
    return 0;
  }
  const auto price = provision::price_of(wish);
  std::printf("%s is %s: %s in %s, %zu hosts, $%s an hour by list prices (%s)\n", slice.name.c_str(),
              slice.state.c_str(), thing.type.c_str(), slice.zone.c_str(), slice.hosts().size(),
              provision::dollars(price).c_str(), provision::price_date().c_str());
  if (!slice.ready()) std::printf("It is in the queue: sluice tpu wait %s\n", slice.name.c_str());
  return 0;
}

}  // namespace

Verb tpu_create_verb() {
  auto flags = std::make_shared<CreateFlags>();
  return {.name = "create",
          .help = "Make a TPU slice, or adopt the one of this name that an earlier try made",
          .footer =
              "A zone without capacity: the next zone is asked; a region's quota used up: the next "
              "region; not allowed: it stops. Run it again after any interruption: it continues where "
              "it was.",
          .add_flags =
              [flags](CLI::App& app) {
                add_flags(app, create_rows(*flags));
                app.get_option(kStartupScript)->check(CLI::ExistingFile);
              },
          .run = [flags] { return guard_interrupt([&] { return create(*flags); }); }};
}

}  // namespace sluice::cli
