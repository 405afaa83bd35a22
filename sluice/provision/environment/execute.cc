#include "sluice/provision/environment/execute.h"

#include "sluice/base/text/join.h"
#include "sluice/google/buckets.h"
#include "sluice/google/filestore.h"
#include "sluice/provision/environment/fill.h"
#include "sluice/provision/environment/move_end.h"
#include "sluice/provision/environment/requests.h"
#include "sluice/provision/environment/resource.h"
#include "sluice/provision/price.h"

namespace sluice::provision {
namespace {

using base::str;
using google::Done;
using google::Json;
using google::Kind;
using google::Scope;

// A dry run prints this where a request needs the answer to an earlier one.
constexpr const char* kUnknownAddress = "ADDRESS-OF-THE-SHARE";

class Executor {
 public:
  Executor(Cloud& cloud, const Settings& settings, const Plan& plan)
      : cloud_(cloud), settings_(settings), plan_(plan), name_(plan.mark.environment) {}

  Done run();

 private:
  Done begin_machines();
  Done act(const Step& step);
  Done create(const Step& step);
  Done create_bucket(const Step& step);
  Done create_tpu();
  Done grow(const Step& step);
  Done remove(const Step& step);
  Done remove_bucket(const Step& step);
  Resource global(const char* collection, const std::string& name, const Json& body = nullptr) {
    return compute_resource(cloud_, Scope::global(), collection, name, body);
  }
  Resource zonal(const char* collection, const Step& step, const Json& body = nullptr) {
    return compute_resource(cloud_, Scope::zone(step.zone), collection, step.name, body);
  }
  Done made(const Resource& resource, bool begun = false) {
    GOOGLE_TRY(const Json json, make(cloud_, name_, resource, begun));
    return {};
  }
  google::Outcome<std::string> share_address();

  Cloud& cloud_;
  const Settings& settings_;
  const Plan& plan_;
  const std::string name_;
  bool machines_begun_ = false;
  std::string share_address_;
};

google::Outcome<std::string> Executor::share_address() {
  if (!settings_.nfs || !share_address_.empty()) return share_address_;
  if (cloud_.api->dry_run()) return std::string(kUnknownAddress);
  google::Filestores shares(*cloud_.api, cloud_.project);
  GOOGLE_TRY(const auto share, shares.get(settings_.zone(), nfs_name(name_)));
  share_address_ = share.ip;
  return share_address_;
}

// Sends the requests for all machines first, then waits: together they take as long as one.
Done Executor::begin_machines() {
  machines_begun_ = true;
  GOOGLE_TRY(const std::string address, share_address());
  for (const Step& step : plan_.steps) {
    if (step.act != Act::kCreate || step.part != Part::kMachine) continue;
    const auto begun =
        cloud_.compute().insert(Scope::zone(step.zone), "instances",
                                machine_body(settings_, plan_.mark, step.name, address, cloud_.now()));
    if (!begun && begun.error().kind != Kind::kExists && begun.error().kind != Kind::kWrongState)
      return tl::unexpected<google::Failure>(begun.error());
  }
  return {};
}

Done Executor::create(const Step& step) {
  const Mark& mark = plan_.mark;
  switch (step.part) {
    case Part::kNetwork:
      return made(global("networks", step.name, network_body(settings_, mark)));
    case Part::kFirewall: {
      const std::string rule = step.name == firewall_name(name_, "ssh") ? "ssh" : "internal";
      return made(global("firewalls", step.name, firewall_body(settings_, mark, rule)));
    }
    case Part::kNfs: {
      GOOGLE_TRY(
          const Json share,
          make(cloud_, name_, share_resource(cloud_, step.zone, step.name, nfs_body(settings_, mark))));
      share_address_ = google::filestore_of(share).ip;
      return {};
    }
    case Part::kDisk:
      GOOGLE_OK(made(zonal("disks", step, disk_body(settings_, mark))));
      // A disk that a script fills is shared after that.
      return settings_.disk->script ? Done() : share_disk(cloud_, settings_);
    case Part::kMachine: {
      if (!machines_begun_) GOOGLE_OK(begin_machines());
      if (cloud_.api->dry_run()) return {};
      GOOGLE_TRY(const std::string address, share_address());
      return made(zonal("instances", step, machine_body(settings_, mark, step.name, address, cloud_.now())),
                  /*begun=*/true);
    }
    case Part::kBucket:
      return create_bucket(step);
    case Part::kTpu:
      return create_tpu();
    case Part::kPrepare:
      break;
  }
  return {};
}

Done Executor::create_bucket(const Step& step) {
  google::Buckets buckets(*cloud_.api, cloud_.project);
  const auto made = buckets.create(bucket_body(settings_, plan_.mark));
  if (made) return {};
  if (made.error().kind != Kind::kExists) return tl::unexpected<google::Failure>(made.error());
  const auto there = buckets.get(step.name);
  if (!there && there.error().kind == Kind::kForbidden)
    return google::failed(Kind::kExists, Code::kAlreadyExists, "the bucket name ", step.name,
                          " is taken by somebody else: all the world shares these names. Set bucket.name");
  if (!there) return tl::unexpected<google::Failure>(there.error());
  if (const auto may = may_adopt(mark_of_labels(there->labels), name_, "the bucket " + step.name); !may)
    return google::failed(Kind::kExists, Code::kAlreadyExists, may.error().what());
  return {};
}

Done Executor::create_tpu() {
  GOOGLE_TRY(const std::string address, share_address());
  GOOGLE_TRY(const Slice slice, create_slice(cloud_, tpu_wish(settings_, plan_.mark, address, cloud_.now())));
  return {};
}

Done Executor::grow(const Step& step) {
  const Json size = str(static_cast<long long>(step.size_gb));
  if (step.part == Part::kDisk) {
    google::Compute compute = cloud_.compute();
    const Scope zone = Scope::zone(step.zone);
    return change(
        cloud_, "the size of " + step.name,
        [&] {
          return compute.act(zone, "disks", step.name, "resize", {{"sizeGb", size}});
        },
        [&] {
          const auto now = compute.get(zone, "disks", step.name);
          return now && google::number(*now, "sizeGb") >= step.size_gb;
        });
  }
  google::Filestores shares(*cloud_.api, cloud_.project);
  const Json body = {{"fileShares", file_shares(settings_, step.size_gb)}};
  return change(
      cloud_, "the size of " + step.name,
      [&] { return shares.patch(step.zone, step.name, body, "fileShares"); },
      [&] {
        const auto now = shares.get(step.zone, step.name);
        return now && now->capacity_gb >= step.size_gb;
      });
}

Done Executor::remove(const Step& step) {
  switch (step.part) {
    case Part::kNetwork:
      return unmake(cloud_, name_, global("networks", step.name));
    case Part::kFirewall:
      return unmake(cloud_, name_, global("firewalls", step.name));
    case Part::kNfs:
      return unmake(cloud_, name_, share_resource(cloud_, step.zone, step.name));
    case Part::kDisk:
      return unmake(cloud_, name_, zonal("disks", step));
    case Part::kPrepare:
    case Part::kMachine:
      return unmake(cloud_, name_, zonal("instances", step));
    case Part::kBucket:
      return remove_bucket(step);
    case Part::kTpu:
      return delete_slice(cloud_, *step.piece->slice);
  }
  return {};
}

Done Executor::remove_bucket(const Step& step) {
  google::Buckets buckets(*cloud_.api, cloud_.project);
  const auto there = buckets.get(step.name);
  if (!there && there.error().kind == Kind::kNotFound) return {};
  if (!there) return tl::unexpected<google::Failure>(there.error());
  if (whose(mark_of_labels(there->labels), name_) != Whose::kOurs)
    return google::failed(Kind::kExists, Code::kAlreadyExists, "the bucket ", step.name,
                          " is not of the environment ", name_, " any more: it is left alone");
  if (step.piece->state == "HOLDS_DATA") {
    GOOGLE_TRY(const auto objects, buckets.objects(step.name));
    for (const std::string& object : objects) GOOGLE_OK(buckets.remove_object(step.name, object));
  }
  const auto done = buckets.remove(step.name);
  if (!done && done.error().kind == Kind::kNotFound) return {};
  if (!done && done.error().kind == Kind::kWrongState) {
    cloud_.say("  " + step.name + " has new objects, so it is not deleted");
    return {};
  }
  return done;
}

Done Executor::act(const Step& step) {
  switch (step.act) {
    case Act::kCreate:
      return create(step);
    case Act::kFill:
      return fill_disk(cloud_, settings_, plan_.mark);
    case Act::kGrow:
      return grow(step);
    case Act::kMark:
      return move_end(cloud_, step, plan_.mark);
    case Act::kDelete:
      return remove(step);
    case Act::kSame:
      return step.part == Part::kDisk ? share_disk(cloud_, settings_) : Done();
    case Act::kKeep:
    case Act::kDiffers:
      break;
  }
  return {};
}

Done Executor::run() {
  size_t count = 0, number = 0;
  for (const Step& step : plan_.steps) count += is_work(step.act) ? 1 : 0;
  for (const Step& step : plan_.steps) {
    if (is_work(step.act))
      cloud_.say(str("[", ++number, "/", count, "] ", act_name(step.act), " ", part_name(step.part), " ",
                     step.name, step.why.empty() ? "" : " (" + step.why + ")"));
    GOOGLE_OK(act(step));
  }
  return {};
}

}  // namespace

Done execute(Cloud& cloud, const Settings& settings, const Plan& plan) {
  return Executor(cloud, settings, plan).run();
}

Done look_into_buckets(Cloud& cloud, const std::string& environment, Survey& survey) {
  google::Buckets buckets(*cloud.api, cloud.project);
  for (Piece& piece : survey.pieces) {
    if (piece.part != Part::kBucket || whose(piece.mark, environment) != Whose::kOurs) continue;
    const auto objects = buckets.objects(piece.name, 1);
    if (!objects && objects.error().kind == Kind::kNotFound) continue;
    if (!objects) return tl::unexpected<google::Failure>(objects.error());
    if (!objects->empty()) piece.state = "HOLDS_DATA";
  }
  return {};
}

}  // namespace sluice::provision
