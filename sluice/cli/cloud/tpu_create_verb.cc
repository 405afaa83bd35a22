// sluice tpu create
#include <cstdio>
#include <memory>

#include "sluice/base/clock.h"
#include "sluice/base/file.h"
#include "sluice/base/strings.h"
#include "sluice/cli/cloud/common.h"
#include "sluice/cli/cloud/tpu_verbs.h"
#include "sluice/provision/price.h"

namespace sluice::cli {
namespace {

struct CreateFlags {
  CloudFlags cloud;
  provision::SliceWish wish;
  bool spot = false, on_demand = false, internal = false;
  std::string flex, wait_until, ttl, idle, script, env, owner;
  std::vector<std::string> labels;
};

CLI::Option* listed(CLI::Option* option) {
  return option->delimiter(',')->allow_extra_args(false)->take_all()->expected(1);
}

void what_flags(CLI::App& app, CreateFlags& flags) {
  app.add_option("NAME", flags.wish.name, "The slice's name")->required();
  app.add_option("--type", flags.wish.type, "v3-32, v5litepod-16 …: sluice tpu types lists them")->required();
  listed(app.add_option("--zones", flags.wish.zones,
                        "Zones in the order to try them, a,b; any: all that have the type"))
      ->required();
  app.add_option("--slices", flags.wish.slices, "Make N slices that train together")->check(between(1, 256));
  app.add_option("--runtime", flags.wish.runtime,
                 "Software version; default: the generation's. Of tpu7x the machines' image");
  app.add_option("--startup-script", flags.script, "A file that each host runs when it starts")
      ->check(CLI::ExistingFile);
  app.add_option("--network", flags.wish.network, "Network; default: the project's default one");
  app.add_option("--subnetwork", flags.wish.subnetwork, "Subnetwork");
  app.add_flag("--internal-ips", flags.internal, "The hosts have no external addresses");
  app.add_option("--service-account", flags.wish.service_account,
                 "Whom the hosts act as; default: the project's");
  listed(app.add_option("--tags", flags.wish.tags, "Network tags, a,b"));
  app.add_option("--label", flags.labels, "NAME=VALUE; repeatable")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
}

void how_flags(CLI::App& app, CreateFlags& flags) {
  app.add_flag("--spot", flags.spot, "Use spot capacity: cheap, and Google may take it back at any time")
      ->group("Capacity");
  app.add_flag("--on-demand", flags.on_demand, "Pay the list price, if there is capacity (the default)")
      ->group("Capacity");
  app.add_option("--reservation", flags.wish.reservation, "Use the capacity of this reservation")
      ->group("Capacity");
  app.add_option("--flex-start", flags.flex,
                 "Wait in the queue, then use it for this time, such as 12h; at most 7d")
      ->group("Capacity");
  app.add_flag("--queued", flags.wish.queued,
               "Make a queue entry, which Google keeps, even where a node would do");
  app.add_option("--wait-until", flags.wait_until,
                 "Hunt and queue until then: a span (6h) or a time; default: each zone is asked once");
  app.add_option("--zone-wait", flags.wish.zone_wait,
                 "Let a queue entry wait this long in one zone while others are left to try [s]")
      ->check(kZeroOrMore);
  app.add_option(
      "--ttl", flags.ttl,
      "It is deleted then: a span (8h) or a time (2026-11-26T08:00:00Z); Google holds it, no client");
  app.add_option("--idle", flags.idle,
                 "Let worker 0 delete it when it was not used for this long, such as 30m. Needs "
                 "tpu.nodes.delete for the service account; sluice tpu guard says whether it has it");
  app.add_option("--max-cost", flags.wish.max_cost,
                 "Ask for nothing that costs more until --ttl by list prices [$]")
      ->check(kAboveZero);
  app.add_option("--env", flags.env, "The environment that it belongs to; default: tpu-NAME, its own");
  app.add_option("--owner", flags.owner, "Who pays attention to it; default: the user here");
}

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
  const auto or_usage = [](const base::Result<double>& value) {
    if (!value) throw Usage(value.error().what());
    return *value;
  };
  check_capacity_flags(flags);
  if (flags.spot) wish.capacity = provision::Capacity::kSpot;
  if (!wish.reservation.empty()) wish.capacity = provision::Capacity::kReservation;
  if (!flags.flex.empty()) {
    wish.capacity = provision::Capacity::kFlexStart;
    wish.flex_duration = or_usage(base::parse_span(flags.flex, "--flex-start"));
  }
  if (!flags.ttl.empty()) wish.mark.expires = or_usage(provision::parse_expiry(flags.ttl, now, "--ttl"));
  if (!flags.idle.empty()) wish.idle = or_usage(base::parse_span(flags.idle, "--idle"));
  if (!flags.wait_until.empty())
    wish.wait_until = or_usage(provision::parse_expiry(flags.wait_until, now, "--wait-until"));
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
                what_flags(app, *flags);
                how_flags(app, *flags);
                add_project(app, flags->cloud);
                add_dry_run(app, flags->cloud);
                add_json(app, flags->cloud);
              },
          .run = [flags] { return guard_interrupt([&] { return create(*flags); }); }};
}

}  // namespace sluice::cli
