#include "sluice/provision/environment/plan.h"

#include <algorithm>
#include <cmath>

#include "sluice/base/clock.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/base/text/join.h"
#include "sluice/provision/environment/requests.h"
#include "sluice/provision/price.h"

namespace sluice::provision {
namespace {

using base::str;

std::string place(const std::string& zone) { return zone.empty() ? "" : " in " + zone; }

// Assembles the steps of apply and update.
class Planner {
 public:
  Planner(const Settings& settings, const Survey& survey, const PlanOptions& options)
      : settings_(settings), survey_(survey), options_(options) {}

  Plan plan();

 private:
  bool asked(Part part) const { return options_.only.empty() || among(options_.only, part); }
  bool replaces() const { return options_.verb == PlanOptions::kUpdate; }
  void problem(const std::string& text) { plan_.problems.push_back(text); }
  void mark();
  void whose_is_it();
  void costs();
  std::optional<double> hourly() const;
  void ends();

  // Returns the piece of this name if it is ours.
  const Piece* existing(Part part, const std::string& name) const;
  void step(Act act, Part part, const std::string& name, const std::string& zone, const std::string& why,
            std::optional<double> hourly, const Piece* piece = nullptr, double size_gb = 0);
  void remove(const Piece& piece, const std::string& why);
  void differs(const Piece& piece, const std::string& why);

  void network();
  void firewall(const std::string& rule);
  void nfs();
  void disk();
  void fill_disk(const Piece* disk);
  void replace_disk(const Piece& disk, const std::string& why);
  void machines();
  void bucket();
  void tpu();
  std::string difference(const Piece& slice) const;
  void unwanted(Part part, bool wanted, bool deletes);

  const Settings& settings_;
  const Survey& survey_;
  const PlanOptions& options_;
  Plan plan_;
  std::vector<Step> removals_;  // before all other steps, the most expensive first
  bool users_go_ = false;       // machines and TPU release the disk, which is re-created
};

const Piece* Planner::existing(Part part, const std::string& name) const {
  const Piece* piece = survey_.find(part, name);
  return piece != nullptr && whose(piece->mark, settings_.name) == Whose::kOurs ? piece : nullptr;
}

void Planner::step(Act act, Part part, const std::string& name, const std::string& zone,
                   const std::string& why, std::optional<double> hourly, const Piece* piece, double size_gb) {
  plan_.steps.push_back({act, part, name, zone, why, hourly, size_gb,
                         piece != nullptr ? std::optional<Piece>(*piece) : std::nullopt});
}

void Planner::remove(const Piece& piece, const std::string& why) {
  for (const Step& other : removals_)
    if (other.part == piece.part && other.name == piece.name && other.zone == piece.zone) return;
  removals_.push_back({Act::kDelete, piece.part, piece.name, piece.zone, why, piece.hourly, 0, piece});
}

void Planner::differs(const Piece& piece, const std::string& why) {
  step(Act::kDiffers, piece.part, piece.name, piece.zone, why, piece.hourly, &piece);
}

void Planner::mark() {
  plan_.mark.environment = settings_.name;
  plan_.mark.owner = settings_.owner;
  plan_.mark.created = options_.now;
  for (const Piece& piece : survey_.of(settings_.name))
    if (piece.mark->created > 0) plan_.mark.created = std::min(plan_.mark.created, piece.mark->created);
  const auto expires = expiry_of(settings_, plan_.mark.created, options_.now);
  if (!expires) return problem(expires.error().what());
  plan_.mark.expires = *expires;
}

void Planner::whose_is_it() {
  for (const Piece& piece : survey_.of(settings_.name))
    if (!piece.mark->owner.empty() && piece.mark->owner != settings_.owner)
      return problem(str("an environment '", settings_.name, "' of ", piece.mark->owner, " exists in ",
                         settings_.project, " (", part_name(piece.part), " ", piece.name, "), and you are ",
                         settings_.owner, ": choose another env.name, or set env.owner if it is yours"));
  const auto check = [&](Part part, const std::string& name) {
    const Piece* piece = survey_.find(part, name);
    if (piece == nullptr || !asked(part)) return;
    if (const auto may = may_adopt(piece->mark, settings_.name,
                                   str("the ", part_name(part), " ", name, place(piece->zone)));
        !may)
      problem(may.error().what());
  };
  if (settings_.network.empty()) check(Part::kNetwork, network_name(settings_.name));
  check(Part::kFirewall, firewall_name(settings_.name, "ssh"));
  if (settings_.network.empty()) check(Part::kFirewall, firewall_name(settings_.name, "internal"));
  if (settings_.nfs) check(Part::kNfs, nfs_name(settings_.name));
  if (settings_.disk) check(Part::kDisk, disk_name(settings_.name));
  if (settings_.disk) check(Part::kMachine, prepare_name(settings_.name));
  if (settings_.bucket) check(Part::kBucket, bucket_name(settings_));
  if (settings_.tpu) check(Part::kTpu, tpu_name(settings_.name));
  for (int i = 0; settings_.machines && i < settings_.machines->count; ++i)
    check(Part::kMachine, machine_name(settings_.name, i));
}

void Planner::network() {
  if (!asked(Part::kNetwork)) return;
  if (settings_.network.empty()) {
    const std::string name = network_name(settings_.name);
    const Piece* piece = existing(Part::kNetwork, name);
    step(piece != nullptr ? Act::kSame : Act::kCreate, Part::kNetwork, name, "", "", 0, piece);
    firewall("internal");
  }
  firewall("ssh");
}

void Planner::firewall(const std::string& rule) {
  const std::string name = firewall_name(settings_.name, rule);
  const Piece* piece = existing(Part::kFirewall, name);
  const std::string wanted = base::join(firewall_ranges(settings_, rule), ",");
  if (piece != nullptr && piece->type != wanted) {
    const std::string why = str("it lets in ", piece->type, ", the file says ", wanted);
    if (!replaces()) return differs(*piece, why + ": update --only network makes it again");
    remove(*piece, why);
    piece = nullptr;
  }
  step(piece != nullptr ? Act::kSame : Act::kCreate, Part::kFirewall, name, "", "", 0, piece);
}

void Planner::nfs() {
  unwanted(Part::kNfs, settings_.nfs.has_value(), false);
  if (!settings_.nfs || !asked(Part::kNfs)) return;
  const NfsSettings& nfs = *settings_.nfs;
  const std::string name = nfs_name(settings_.name);
  const Piece* piece = existing(Part::kNfs, name);
  const auto hourly = filestore_price(nfs.tier, nfs.size_gb);
  if (piece == nullptr)
    return step(Act::kCreate, Part::kNfs, name, settings_.zone(), str(nfs.size_gb, " GiB ", nfs.tier),
                hourly);
  if (piece->zone != settings_.zone() || piece->type != nfs.tier || nfs.size_gb < piece->size_gb)
    return differs(*piece, str("it is ", piece->size_gb, " GiB ", piece->type, " in ", piece->zone,
                               ", the file says ", nfs.size_gb, " GiB ", nfs.tier, " in ", settings_.zone(),
                               ": it holds data, so only destroy --only nfs and apply change that"));
  if (nfs.size_gb > piece->size_gb)
    return step(Act::kGrow, Part::kNfs, name, piece->zone,
                str("from ", piece->size_gb, " to ", nfs.size_gb, " GiB"), hourly, piece, nfs.size_gb);
  step(Act::kSame, Part::kNfs, name, piece->zone, "", piece->hourly, piece);
}

void Planner::fill_disk(const Piece* disk) {
  const std::string prepare = prepare_name(settings_.name);
  const Piece* machine = existing(Part::kPrepare, prepare);
  const bool filled = disk != nullptr && disk->labels.count(kDataLabel) != 0;
  if (filled || !settings_.disk->script) {
    if (machine != nullptr) remove(*machine, "the disk is filled");
    return;
  }
  step(Act::kFill, Part::kPrepare, prepare, settings_.zone(),
       str("runs ", settings_.disk->script->path, ", then it is deleted"), std::nullopt, machine);
}

void Planner::replace_disk(const Piece& disk, const std::string& why) {
  if (!replaces()) {
    differs(disk, why + ": update --only disk,machines,tpu makes it again");
    if (disk.labels.count(kDataLabel) == 0 && settings_.disk->script)
      problem(str("the disk ", disk.name, " is not filled yet, and ", why,
                  ": update --only disk makes it again"));
    return;
  }
  for (const Piece& piece : survey_.of(settings_.name)) {
    if (piece.part != Part::kMachine && piece.part != Part::kTpu) continue;
    if (!asked(piece.part))
      return problem(str("the disk ", disk.name, " cannot be re-created (", why, ") while ",
                         part_name(piece.part), " ", piece.name, " uses it: add ",
                         piece.part == Part::kTpu ? "tpu" : "machines", " to --only"));
  }
  users_go_ = true;
  remove(disk, why);
  step(Act::kCreate, Part::kDisk, disk.name, settings_.zone(),
       str(settings_.disk->size_gb, " GiB ", disk_type(settings_)),
       disk_price(disk_type(settings_), settings_.disk->size_gb));
  fill_disk(nullptr);
}

void Planner::disk() {
  unwanted(Part::kDisk, settings_.disk.has_value(), false);
  if (!settings_.disk || !asked(Part::kDisk)) return;
  const DiskSettings& wish = *settings_.disk;
  const std::string name = disk_name(settings_.name), type = disk_type(settings_);
  const auto hourly = disk_price(type, wish.size_gb);
  const Piece* piece = existing(Part::kDisk, name);
  if (piece == nullptr) {
    step(Act::kCreate, Part::kDisk, name, settings_.zone(), str(wish.size_gb, " GiB ", type), hourly);
    return fill_disk(nullptr);
  }
  if (piece->zone != settings_.zone() || piece->type != type || wish.size_gb < piece->size_gb)
    return replace_disk(
        *piece, str("it is ", piece->size_gb, " GiB ", piece->type, " in ", piece->zone, ", the file says ",
                    wish.size_gb, " GiB ", type, " in ", settings_.zone()));
  const auto script = piece->labels.find(kScriptLabel);
  const bool filled = piece->labels.count(kDataLabel) != 0;
  if (filled && script != piece->labels.end() && script->second != script_label(settings_))
    return replace_disk(*piece, "the preparation script or its variables have changed");
  if (wish.size_gb > piece->size_gb) {
    step(Act::kGrow, Part::kDisk, name, piece->zone,
         str("from ", piece->size_gb, " to ", wish.size_gb, " GiB"), hourly, piece, wish.size_gb);
  } else {
    step(Act::kSame, Part::kDisk, name, piece->zone, "", piece->hourly, piece);
  }
  fill_disk(piece);
}

void Planner::machines() {
  if (!asked(Part::kMachine)) return;
  unwanted(Part::kMachine, settings_.machines.has_value(), true);
  if (!settings_.machines) return;
  const MachineSettings& wish = *settings_.machines;
  const auto hourly = machine_price(wish.type, wish.spot);
  for (int i = 0; i < wish.count; ++i) {
    const std::string name = machine_name(settings_.name, i);
    const Piece* piece = existing(Part::kMachine, name);
    std::string why;
    if (piece != nullptr && (piece->state == "TERMINATED" || piece->state == "STOPPED"))
      why = "it is " + piece->state;
    const bool dead = !why.empty();
    if (piece != nullptr && (piece->type != wish.type || piece->zone != settings_.zone()))
      why = str("it is a ", piece->type, " in ", piece->zone, ", the file says ", wish.type, " in ",
                settings_.zone());
    if (piece != nullptr && users_go_) why = "the disk is re-created";
    if (piece != nullptr && why.empty()) {
      step(Act::kSame, Part::kMachine, name, piece->zone, "", piece->hourly, piece);
    } else if (piece != nullptr && !dead && !replaces()) {
      differs(*piece, why + ": update --only machines deletes and creates it");
    } else {
      if (piece != nullptr) remove(*piece, why);
      step(Act::kCreate, Part::kMachine, name, settings_.zone(), wish.type, hourly);
    }
  }
  for (const Piece& piece : survey_.of(settings_.name)) {
    if (piece.part != Part::kMachine) continue;
    bool wanted = false;
    for (int i = 0; i < wish.count; ++i) wanted = wanted || piece.name == machine_name(settings_.name, i);
    if (wanted) continue;
    const std::string why = str("the file wants ", wish.count, " machines");
    replaces() ? remove(piece, why) : differs(piece, why + ": update --only machines deletes it");
  }
}

void Planner::bucket() {
  unwanted(Part::kBucket, settings_.bucket.has_value(), false);
  if (!settings_.bucket || !asked(Part::kBucket)) return;
  const std::string name = bucket_name(settings_);
  const Piece* piece = existing(Part::kBucket, name);
  const std::string region = settings_.bucket->location.empty() ? google::region_of_zone(settings_.zone())
                                                                : settings_.bucket->location;
  step(piece != nullptr ? Act::kSame : Act::kCreate, Part::kBucket, name,
       piece != nullptr ? piece->zone : region, "", 0, piece);
}

std::string Planner::difference(const Piece& slice) const {
  const TpuSettings& wish = *settings_.tpu;
  if (slice.type != wish.type) return str("from ", slice.type, " to ", wish.type);
  if (slice.slice && slice.slice->slices != wish.slices)
    return str("from ", slice.slice->slices, " to ", wish.slices, " slices");
  if (slice.slice && slice.slice->capacity != wish.capacity)
    return str("from ", capacity_name(slice.slice->capacity), " to ", capacity_name(wish.capacity));
  const std::string runtime = slice.slice && !slice.slice->nodes.empty() ? slice.slice->nodes[0].runtime : "";
  if (!wish.runtime.empty() && !runtime.empty() && runtime != wish.runtime)
    return str("from runtime ", runtime, " to ", wish.runtime);
  return "";
}

void Planner::tpu() {
  if (!asked(Part::kTpu)) return;
  unwanted(Part::kTpu, settings_.tpu.has_value(), true);
  if (!settings_.tpu) return;
  const TpuSettings& wish = *settings_.tpu;
  const std::string name = tpu_name(settings_.name);
  const auto hourly = tpu_price(wish.type, wish.capacity == Capacity::kSpot, wish.slices);
  const std::string what =
      str(wish.slices > 1 ? str(wish.slices, " × ") : "", wish.type, " ", capacity_name(wish.capacity));
  const Piece* piece = existing(Part::kTpu, name);
  if (piece == nullptr)
    return step(Act::kCreate, Part::kTpu, name, base::join(settings_.zones, ","), what, hourly);
  std::string why = difference(*piece);
  if (why.empty() && users_go_) why = "the disk is re-created";
  if (is_dead(piece->state)) {
    remove(*piece, "it is " + piece->state);
  } else if (why.empty() && piece->state == "READY") {
    return step(Act::kSame, Part::kTpu, name, piece->zone, "", piece->hourly, piece);
  } else if (why.empty()) {
    // It is still being created, or has to be started: a create adopts it and waits.
    return step(Act::kCreate, Part::kTpu, name, piece->zone, "it is " + piece->state, hourly, piece);
  } else if (!replaces()) {
    return differs(*piece, why + ": update --only tpu deletes and creates it");
  } else {
    remove(*piece, why + ": it is deleted and created; disk, nfs and bucket stay as they are");
  }
  step(Act::kCreate, Part::kTpu, name, base::join(settings_.zones, ","), what, hourly);
}

void Planner::unwanted(Part part, bool wanted, bool deletes) {
  if (wanted || !asked(part)) return;
  for (const Piece& piece : survey_.of(settings_.name)) {
    if (piece.part != part) continue;
    const std::string why = "the file has no such section any more";
    if (deletes && replaces()) {
      remove(piece, why);
    } else {
      differs(piece,
              str(why, deletes ? ": update deletes it" : ": it may hold data, destroy --only deletes it"));
    }
  }
}

// Returns the hourly price of everything that will exist: requested parts as in the file, the others as they
// are.
std::optional<double> Planner::hourly() const {
  Settings wish = settings_;
  if (!asked(Part::kTpu)) wish.tpu.reset();
  if (!asked(Part::kMachine)) wish.machines.reset();
  if (!asked(Part::kNfs)) wish.nfs.reset();
  if (!asked(Part::kDisk)) wish.disk.reset();
  std::optional<double> sum = hourly_of(wish);
  for (const Piece& piece : survey_.of(settings_.name)) {
    if (asked(piece.part) || !sum) continue;
    sum = piece.hourly ? std::optional<double>(*sum + *piece.hourly) : std::nullopt;
  }
  return sum;
}

void Planner::costs() {
  plan_.hourly = hourly();
  if (!plan_.hourly || plan_.mark.expires <= 0) {
    if (settings_.max_cost > 0 && !plan_.hourly)
      problem("env.max_cost: there is no list price of something in the file, so the sum is not known");
    return;
  }
  plan_.total = *plan_.hourly * std::max(0.0, plan_.mark.expires - options_.now) / 3600;
  if (settings_.max_cost > 0 && *plan_.total > settings_.max_cost)
    problem(str("it costs $", dollars(plan_.hourly), " an hour, $", dollars(plan_.total), " until ",
                google::time_of_seconds(plan_.mark.expires), " by list prices (", price_date(),
                "), more than env.max_cost ", dollars(settings_.max_cost), ": nothing was asked for"));
}

// Adds a step for each existing resource whose mark has another end.
void Planner::ends() {
  std::vector<Step> marks;
  for (const Step& step : plan_.steps) {
    const bool stays = step.act == Act::kSame || step.act == Act::kGrow || step.act == Act::kDiffers;
    // A network's description cannot be changed: `sweep` takes this into account.
    if (!stays || !step.piece || step.part == Part::kNetwork) continue;
    // `tpu create --env` gave this slice its own end.
    if (step.part == Part::kTpu && step.name != tpu_name(settings_.name)) continue;
    const Piece& piece = *step.piece;
    if (piece.slice && piece.slice->nodes.empty() && piece.slice->instances.empty()) continue;
    const double before = piece.mark->expires, after = plan_.mark.expires;
    if (label_time(before) == label_time(after)) continue;
    std::string why = after > 0 ? "ends " + google::time_of_seconds(after) : "has no end any more";
    if (before > 0) why += ", not " + google::time_of_seconds(before);
    const bool of_google = piece.slice && (piece.slice->queue.has_value() || piece.slice->compute);
    if (piece.part == Part::kMachine || of_google)
      why += str(
          "; but Google itself deletes it at the time set when it was created, which only destroy --only ",
          piece.part == Part::kTpu ? "tpu" : "machines", " and apply change");
    marks.push_back({Act::kMark, piece.part, piece.name, piece.zone, why, piece.hourly, 0, piece});
  }
  plan_.steps.insert(plan_.steps.end(), marks.begin(), marks.end());
}

Plan Planner::plan() {
  mark();
  whose_is_it();
  costs();
  network();
  nfs();
  disk();
  machines();
  bucket();
  tpu();
  if (plan_.problems.empty()) ends();
  std::stable_sort(removals_.begin(), removals_.end(),
                   [](const Step& a, const Step& b) { return a.part > b.part; });
  plan_.steps.insert(plan_.steps.begin(), removals_.begin(), removals_.end());
  return plan_;
}

}  // namespace

const char* act_name(Act act) {
  switch (act) {
    case Act::kSame:
      return "same";
    case Act::kCreate:
      return "create";
    case Act::kFill:
      return "fill";
    case Act::kGrow:
      return "grow";
    case Act::kMark:
      return "mark";
    case Act::kDelete:
      return "delete";
    case Act::kKeep:
      return "keep";
    case Act::kDiffers:
      return "differs";
  }
  return "?";
}

bool is_work(Act act) {
  return act == Act::kCreate || act == Act::kFill || act == Act::kGrow || act == Act::kMark ||
         act == Act::kDelete;
}

bool Plan::changes() const {
  return std::any_of(steps.begin(), steps.end(), [](const Step& step) { return is_work(step.act); });
}

Plan plan_changes(const Settings& settings, const Survey& survey, const PlanOptions& options) {
  return Planner(settings, survey, options).plan();
}

std::optional<double> hourly_of(const Settings& settings) {
  double sum = 0;
  const auto add = [&](std::optional<double> part, double times = 1) {
    if (!part) return false;
    sum += *part * times;
    return true;
  };
  bool known = true;
  if (settings.tpu)
    known &=
        add(tpu_price(settings.tpu->type, settings.tpu->capacity == Capacity::kSpot, settings.tpu->slices));
  if (settings.machines) {
    known &= add(machine_price(settings.machines->type, settings.machines->spot), settings.machines->count);
    known &= add(disk_price("pd-balanced", settings.machines->boot_disk_gb), settings.machines->count);
  }
  if (settings.nfs) known &= add(filestore_price(settings.nfs->tier, settings.nfs->size_gb));
  if (settings.disk) known &= add(disk_price(disk_type(settings), settings.disk->size_gb));
  return known ? std::optional<double>(sum) : std::nullopt;
}

base::Result<double> expiry_of(const Settings& settings, double created, double now) {
  if (settings.ttl.empty()) return 0.0;
  if (google::seconds_of_time(settings.ttl) > 0) return parse_expiry(settings.ttl, now, "env.ttl");
  SLUICE_TRY(const double span, base::parse_span(settings.ttl, "env.ttl"));
  if (created + span > now) return created + span;
  return base::fail(Code::kFailedPrecondition, "env.ttl ", settings.ttl, ": the environment was made at ",
                    google::time_of_seconds(created), ", so that its time has passed at ",
                    google::time_of_seconds(created + span), ": destroy it, or make env.ttl longer");
}

std::string script_label(const Settings& settings) {
  if (!settings.disk || !settings.disk->script) return "none";
  std::string all = settings.disk->script->text;
  for (const auto& [name, value] : settings.disk->variables) all += str('\0', name, '=', value);
  return base::hexadecimal(base::sha256(all)).substr(0, 32);
}

}  // namespace sluice::provision
