#include "sluice/provision/remote/kept_slice.h"

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/files/private_file.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/log.h"
#include "sluice/provision/compute_slices.h"
#include "sluice/provision/guard.h"
#include "sluice/provision/price.h"
#include "sluice/provision/remote/reach.h"
#include "sluice/provision/slice_request.h"
#include "sluice/provision/slice_state.h"

namespace sluice::provision {
namespace {
using google::Json;

std::string record_path(const Cloud& cloud, const std::string& name) {
  return base::join_path(reach_folder(), base::str("keep/", cloud.project, '.', name, ".json"));
}

void take_maintenance(SliceStates& states, const Json& announced) {
  const std::string begins = google::text(announced, "windowStartTime");
  if (begins.empty()) return;
  states.maintenance = google::seconds_of_time(begins);
  states.maintenance_waits = google::truth(announced, "canReschedule");
}

// Returns the number of the first slice without a node.
int vanished_slice(const Slice& slice) {
  int number = 0;
  for (const google::Node& node : slice.nodes) number += slice.number_of(node) == number ? 1 : 0;
  return number;
}

std::string text_of_slice(const Slice& slice, int number) {
  return slice.slices == 1 ? ""
                           : base::str("slice ", number, " of ", slice.slices, ", ", slice.name, '-', number);
}

SliceStates states_of(const Slice& slice) {
  SliceStates states;
  if (slice.compute) states.node = slice.state;
  for (const Json& machine : slice.instances)
    take_maintenance(states, google::at(machine, "resourceStatus.upcomingMaintenance"));
  if (slice.queue) states.queued = slice.queue->state;
  // With several nodes, the one that keeps the slice from being READY counts.
  for (const google::Node& node : slice.nodes) {
    const bool worse = states.node.empty() || (states.node == "READY" && states.health == "HEALTHY");
    if (worse) {
      states.node = node.state;
      states.health = node.health;
      states.which = text_of_slice(slice, slice.number_of(node));
    }
    take_maintenance(states, google::at(node.json, "upcomingMaintenance"));
  }
  if (static_cast<int>(slice.nodes.size()) < slice.slices && !slice.nodes.empty() && states.node == "READY") {
    states.node = "TERMINATED";  // one of several has vanished
    states.which = text_of_slice(slice, vanished_slice(slice));
  }
  return states;
}

// Makes a wish from the slice's nodes, or from its queue entry if they are gone.
SliceWish wish_of_nodes(const Slice& slice) {
  SliceWish wish;
  wish.name = slice.name;
  wish.type = slice.type;
  wish.zones = {slice.zone};
  wish.capacity = slice.capacity;
  wish.slices = slice.slices;
  wish.queued = slice.queue.has_value();
  if (slice.queue) wish.reservation = slice.queue->reservation;
  if (slice.mark) wish.mark = *slice.mark;
  Json node = nullptr;
  if (!slice.nodes.empty()) {
    node = slice.nodes.front().json;
  } else if (slice.queue) {
    const auto specs = google::elements(slice.queue->json, "tpu.nodeSpec");
    if (!specs.empty()) node = google::at(specs.front(), "node");
  }
  wish.runtime = google::text(node, "runtimeVersion");
  wish.network = google::text(node, "networkConfig.network");
  wish.subnetwork = google::text(node, "networkConfig.subnetwork");
  const Json& external = google::at(node, "networkConfig.enableExternalIps");
  wish.external_ips = external.is_null() || google::truth(node, "networkConfig.enableExternalIps");
  wish.service_account = google::text(node, "serviceAccount.email");
  if (const auto scopes = google::items(node, "serviceAccount.scope"); !scopes.empty()) wish.scopes = scopes;
  wish.labels = google::texts(node, "labels");
  wish.metadata = google::texts(node, "metadata");
  wish.tags = google::items(node, "tags");
  wish.data_disks = google::elements(node, "dataDisks");
  return wish;
}

// Returns the number of slices that cost money.
int charged_slices(const Slice& slice) {
  const auto is_charged = [](const std::string& state) {
    return !is_dead(state) && state != "CREATING" && state != "STOPPED";
  };
  if (slice.compute || (slice.queue && is_lost(slice.queue->state))) return is_charged(slice.state) ? 1 : 0;
  return static_cast<int>(std::count_if(slice.nodes.begin(), slice.nodes.end(),
                                        [&](const google::Node& node) { return is_charged(node.state); }));
}

// Removes what the wish adds again by itself: its mark, the startup script, the timer; and keys, which are
// added when they are needed.
void leave_out_what_is_made(SliceWish& wish) {
  for (const auto& [name, value] : labels_of({"e", "o", 1, 1})) wish.labels.erase(name);
  wish.metadata.erase("ssh-keys");
  const auto script = wish.metadata.extract("startup-script");
  if (script.empty()) return;
  wish.startup_script = script.mapped();
  if (take_guard(wish)) wish.metadata.erase(kDeadlineKey);
}

}  // namespace

google::Outcome<SliceWish> wish_of(Cloud& cloud, const Slice& slice) {
  SliceWish wish;
  if (slice.compute) {
    GOOGLE_TRY(wish, wish_of_group(cloud, slice));
  } else {
    wish = wish_of_nodes(slice);
  }
  leave_out_what_is_made(wish);
  return wish;
}

std::string text_of_wish(const SliceWish& wish) {
  return Json{{"name", wish.name},
              {"type", wish.type},
              {"zones", wish.zones},
              {"capacity", static_cast<int>(wish.capacity)},
              {"reservation", wish.reservation},
              {"flex_duration", wish.flex_duration},
              {"slices", wish.slices},
              {"queued", wish.queued},
              {"idle", wish.idle},
              {"runtime", wish.runtime},
              {"network", wish.network},
              {"subnetwork", wish.subnetwork},
              {"external_ips", wish.external_ips},
              {"service_account", wish.service_account},
              {"scopes", wish.scopes},
              {"startup_script", wish.startup_script},
              {"tags", wish.tags},
              {"labels", wish.labels},
              {"metadata", wish.metadata},
              {"data_disks", wish.data_disks},
              {"environment", wish.mark.environment},
              {"owner", wish.mark.owner},
              {"created", wish.mark.created},
              {"expires", wish.mark.expires}}
      .dump(2);
}

base::Result<SliceWish> wish_of_text(const std::string& text) {
  try {
    const Json json = base::parse_json(text);
    SliceWish wish;
    json.at("name").get_to(wish.name);
    json.at("type").get_to(wish.type);
    json.at("zones").get_to(wish.zones);
    wish.capacity = static_cast<Capacity>(json.at("capacity").get<int>());
    json.at("reservation").get_to(wish.reservation);
    json.at("flex_duration").get_to(wish.flex_duration);
    json.at("slices").get_to(wish.slices);
    json.at("queued").get_to(wish.queued);
    json.at("idle").get_to(wish.idle);
    json.at("runtime").get_to(wish.runtime);
    json.at("network").get_to(wish.network);
    json.at("subnetwork").get_to(wish.subnetwork);
    json.at("external_ips").get_to(wish.external_ips);
    json.at("service_account").get_to(wish.service_account);
    json.at("scopes").get_to(wish.scopes);
    json.at("startup_script").get_to(wish.startup_script);
    json.at("tags").get_to(wish.tags);
    json.at("labels").get_to(wish.labels);
    json.at("metadata").get_to(wish.metadata);
    json.at("data_disks").get_to(wish.data_disks);
    json.at("environment").get_to(wish.mark.environment);
    json.at("owner").get_to(wish.mark.owner);
    json.at("created").get_to(wish.mark.created);
    json.at("expires").get_to(wish.mark.expires);
    return wish;
  } catch (const Json::exception& error) {
    return base::fail(Code::kDataLoss, "not what `sluice keep` writes: ", error.what());
  }
}

base::Result<KeptStart> find_start(Cloud& cloud, const KeptSliceOptions& options, bool asks) {
  KeptStart start;
  std::string missing;
  if (asks) {
    auto found = find_slice(cloud, options.name, options.zone);
    if (!found && found.error().kind != google::Kind::kNotFound) return tl::unexpected<Error>(found.error());
    found ? void(start.slice = std::move(*found)) : void(missing = found.error().what());
  }
  if (start.slice) {
    SLUICE_TRY(start.wish, wish_of(cloud, *start.slice));
  } else if (options.wish) {
    start.wish = options.wish;
  } else if (const auto text = base::read_file(record_path(cloud, options.name)); text) {
    SLUICE_TRY(start.wish, wish_of_text(*text));
    start.is_recorded = true;
  }
  if (!start.wish && asks)
    return base::fail(Code::kNotFound, missing, "; make it first (`sluice tpu create ", options.name,
                      " …`), or say with --type and --zones what to make");
  if (options.needs_price && start.wish && !price_of(*start.wish))
    return base::fail(Code::kInvalidArgument, "--max-cost: there is no list price of ", start.wish->type,
                      ", so the sum is not known; --ttl ends it at a time");
  if (start.wish && options.min_slices > start.wish->slices)
    return base::fail(
        Code::kInvalidArgument, "--min-slices ", options.min_slices, ": the TPU ", options.name,
        start.wish->slices == 1 ? " has one slice" : base::str(" has only ", start.wish->slices, " slices"));
  if (start.wish && !options.zones.empty()) start.wish->zones = options.zones;
  return start;
}

SliceView view_of(const Slice& slice, double now, double notice_seconds) {
  SliceView view = view_slice(states_of(slice), now, notice_seconds);
  view.slices = slice.slices;
  // A queue entry that ends takes all of its slices with it.
  if (!slice.queue || !is_lost(slice.queue->state)) view.usable = slice.usable();
  return view;
}

std::vector<std::string> run_command(const KeptSliceOptions& options, const std::string& zone,
                                     const std::string& project, int restart,
                                     const std::vector<int>& slices) {
  std::vector<std::string> command = options.command;
  command.insert(command.end(), {"--tpu", options.name, "--zone", zone, "--project", project,
                                 "--end-with-parent", "--env", base::str("SLUICE_RESTART=", restart)});
  if (!slices.empty()) command.insert(command.end(), {"--use-slices", base::join(slices, ",")});
  command.insert(command.end(), options.arguments.begin(), options.arguments.end());
  return command;
}

base::Result<std::unique_ptr<KeptSlice>> KeptSlice::open(Cloud cloud, KeptSliceOptions options) {
  SLUICE_TRY(KeptStart start, find_start(cloud, options));
  if (start.slice && options.zone.empty()) options.zone = start.slice->zone;
  SLUICE_OK(base::make_private_folder(base::parent_path(record_path(cloud, options.name))));
  std::unique_ptr<KeptSlice> kept(
      new KeptSlice(std::move(cloud), std::move(options), std::move(*start.wish)));
  SLUICE_OK(kept->record());
  return kept;
}

KeptSlice::KeptSlice(Cloud cloud, KeptSliceOptions options, SliceWish wish)
    : cloud_(std::move(cloud)), options_(std::move(options)), wish_(std::move(wish)), zone_(options_.zone) {
  cloud_.cancelled = &cancelled_;
  counted_until_ = now();
}

KeptSlice::~KeptSlice() = default;

base::Status KeptSlice::record() const {
  return base::write_private_file(record_path(cloud_, options_.name), text_of_wish(wish_) + "\n");
}

base::Result<SliceView> KeptSlice::look() {
  const auto slice = find_slice(cloud_, options_.name, zone_);
  if (!slice && slice.error().kind != google::Kind::kNotFound) return tl::unexpected<Error>(slice.error());
  SliceView view;
  view.state = "gone";
  if (slice) {
    zone_ = slice->zone;
    follow_end(*slice);
    view = view_of(*slice, cloud_.now(), options_.notice_seconds);
  }
  count_cost(slice ? charged_slices(*slice) : 0);
  return view;
}

// Another apply may have moved the end of the slice: a re-created slice gets the new one.
void KeptSlice::follow_end(const Slice& slice) {
  if (slice.hosts().empty() || !slice.mark || slice.mark->environment != wish_.mark.environment) return;
  if (slice.mark->expires == wish_.mark.expires) return;
  wish_.mark = *slice.mark;
  if (const auto written = record(); !written) base::warn("keep: ", written.error().what());
}

// A slice costs money from READY until it is deleted.
void KeptSlice::count_cost(int slices) {
  const double time = now();
  if (charged_ > 0) {
    const auto price = tpu_price(wish_.type, wish_.capacity == Capacity::kSpot, charged_);
    dollars_ += price.value_or(0) * (time - counted_until_) / 3600;
  }
  charged_ = slices;
  counted_until_ = time;
}

base::Status KeptSlice::remove_slice() {
  const auto slice = find_slice(cloud_, options_.name, zone_);
  if (!slice && slice.error().kind == google::Kind::kNotFound) return {};
  if (!slice) return tl::unexpected<Error>(slice.error());
  SLUICE_OK(may_adopt(slice->mark, wish_.mark.environment,
                      base::str("the TPU ", options_.name, " in ", slice->zone)));
  const auto deleted = delete_slice(cloud_, *slice);
  if (!deleted) return tl::unexpected<Error>(deleted.error());
  count_cost(0);
  return {};
}

base::Status KeptSlice::create_slice() {
  SliceWish wish = wish_;
  wish.wait_until = cloud_.now() + options_.capacity_seconds;
  // A search for capacity may take long, and looks only at this flag.
  const std::jthread watching([this](const std::stop_token& end) {
    while (!end.stop_requested()) {
      if (signals_.count() > 0) cancelled_ = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  const auto made = provision::create_slice(cloud_, wish);
  if (cancelled_) return base::fail(Code::kCancelled, "told to stop");
  if (!made) {
    const auto& failure = made.error();
    const bool may_come = failure.kind == google::Kind::kNoCapacity || failure.kind == google::Kind::kPassing;
    return base::fail(may_come ? Code::kResourceExhausted : Code::kFailedPrecondition, failure.what());
  }
  zone_ = made->zone;
  count_cost(made->ready() ? wish_.slices : 0);
  say(base::str(options_.name, " is there, in ", zone_));
  return {};
}

base::Status KeptSlice::start_run(int restart) {
  const auto command = run_command(options_, zone_, cloud_.project, restart, used_);
  base::ProcessOptions how;
  how.own_session = true;
  SLUICE_TRY(run_, base::Process::start(command, how));
  return {};
}

std::optional<int> KeptSlice::run_status() {
  if (!run_) return std::nullopt;
  const auto ended = run_->poll();
  return ended ? std::optional(ended->code()) : std::nullopt;
}

void KeptSlice::stop_run() { run_->signal(SIGTERM); }
void KeptSlice::kill_run() { run_->kill(); }

std::string KeptSlice::delete_command() {
  return base::str("sluice tpu delete ", options_.name, " --zone ", zone_, " --project ", cloud_.project);
}

int KeptSlice::signal() {
  signals_.drain();
  if (signals_.count() > 0) cancelled_ = true;
  return signals_.first() == SIGHUP ? SIGTERM : signals_.first();
}

double KeptSlice::now() { return base::monotonic_seconds(); }

void KeptSlice::sleep(double seconds) {
  pollfd wake{signals_.descriptor(), POLLIN, 0};
  ::poll(&wake, 1, static_cast<int>(seconds * 1000));
}

}  // namespace sluice::provision
