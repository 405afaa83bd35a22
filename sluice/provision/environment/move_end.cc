#include "sluice/provision/environment/move_end.h"

#include "sluice/base/text/join.h"
#include "sluice/google/buckets.h"
#include "sluice/google/filestore.h"
#include "sluice/provision/environment/resource.h"
#include "sluice/provision/guard.h"

namespace sluice::provision {
namespace {

using google::Done;
using google::Json;
using google::Kind;
using google::Operation;
using google::Outcome;
using google::Scope;
using google::Texts;

class EndMover {
 public:
  EndMover(Cloud& cloud, const Step& step, const Mark& mark)
      : cloud_(cloud), step_(step), expires_(mark.expires > 0 ? label_time(mark.expires) : ""), mark_(mark) {}

  Done run();

 private:
  using Read = std::function<Outcome<Texts>()>;
  using Write = std::function<Outcome<Operation>(const Texts&)>;

  Texts with_expiry(Texts labels) const {
    labels.erase(kExpiresLabel);
    if (!expires_.empty()) labels[kExpiresLabel] = expires_;
    return labels;
  }
  // Replaces the labels, which the service takes as a whole: labels set by others stay.
  Done replace(const std::string& what, const Read& read, const Write& write);
  Done labels_of_compute(const char* collection) { return labels_of_compute(collection, step_.name); }
  Done labels_of_compute(const char* collection, const std::string& name);
  Done boot_disk();
  Done firewall();
  Done share();
  Done bucket();
  Done slice();
  Done timer(const google::Node& node);

  Cloud& cloud_;
  const Step& step_;
  const std::string expires_;
  const Mark& mark_;
};

Done EndMover::replace(const std::string& what, const Read& read, const Write& write) {
  const auto changed = [&] {
    const auto labels = read();
    return labels && *labels == with_expiry(*labels);
  };
  const auto request = [&]() -> Outcome<Operation> {
    GOOGLE_TRY(const Texts labels, read());
    return write(with_expiry(labels));
  };
  return change(cloud_, "the expiry of " + what, request, changed);
}

Done EndMover::labels_of_compute(const char* collection, const std::string& name) {
  google::Compute compute = cloud_.compute();
  const Scope zone = Scope::zone(step_.zone);
  Json found;
  return replace(
      base::str(collection, "/", name),
      [&]() -> Outcome<Texts> {
        GOOGLE_TRY(found, compute.get(zone, collection, name));
        return google::texts(found, "labels");
      },
      [&](const Texts& labels) { return compute.set_labels(zone, collection, name, labels, found); });
}

// The boot disk has its machine's name and mark.
Done EndMover::boot_disk() {
  const auto disk = cloud_.compute().get(Scope::zone(step_.zone), "disks", step_.name);
  if (!disk && disk.error().kind == Kind::kNotFound) return {};
  if (!disk) return tl::unexpected<google::Failure>(disk.error());
  if (whose(mark_of_labels(google::texts(*disk, "labels")), mark_.environment) != Whose::kOurs) return {};
  return labels_of_compute("disks");
}

Done EndMover::firewall() {
  google::Compute compute = cloud_.compute();
  const std::string description = description_of(mark_);
  return change(
      cloud_, "the expiry of firewalls/" + step_.name,
      [&] {
        return compute.patch(Scope::global(), "firewalls", step_.name, {{"description", description}});
      },
      [&] {
        const auto rule = compute.get(Scope::global(), "firewalls", step_.name);
        return rule && google::text(*rule, "description") == description;
      });
}

Done EndMover::share() {
  google::Filestores shares(*cloud_.api, cloud_.project);
  return replace(
      step_.name,
      [&]() -> Outcome<Texts> {
        GOOGLE_TRY(const auto share, shares.get(step_.zone, step_.name));
        return share.labels;
      },
      [&](const Texts& labels) {
        return shares.patch(step_.zone, step_.name, {{"labels", labels}}, "labels");
      });
}

// A bucket's labels are changed one by one and take effect at once: null removes one.
Done EndMover::bucket() {
  const Json value = expires_.empty() ? Json() : Json(expires_);
  google::Buckets buckets(*cloud_.api, cloud_.project);
  const auto done = buckets.patch(step_.name, {{"labels", {{kExpiresLabel, value}}}});
  return done ? Done() : Done(tl::unexpected<google::Failure>(done.error()));
}

Done EndMover::slice() {
  // For a group, changes the first machine last: the next apply looks only at that one.
  const Json& machines = step_.piece->slice->instances;
  for (auto machine = machines.rbegin(); machine != machines.rend(); ++machine)
    GOOGLE_OK(labels_of_compute("instances", google::text(*machine, "name")));
  google::Tpu tpu = cloud_.tpu();
  for (const google::Node& node : step_.piece->slice->nodes) {
    // The label comes last: the next apply looks only at it.
    GOOGLE_OK(timer(node));
    GOOGLE_OK(replace(
        node.id,
        [&]() -> Outcome<Texts> {
          GOOGLE_TRY(const auto now, tpu.node(node.zone, node.id));
          return now.labels;
        },
        [&](const Texts& labels) { return tpu.patch_labels(node.zone, node.id, labels); }));
  }
  return {};
}

Done EndMover::timer(const google::Node& node) {
  const auto script = node.metadata.find("startup-script");
  if (script == node.metadata.end() || !has_guard(script->second)) return {};
  google::Tpu tpu = cloud_.tpu();
  const std::string deadline = base::str(static_cast<long long>(mark_.expires));
  return change(
      cloud_, "the timer of " + node.id,
      [&]() -> Outcome<Operation> {
        GOOGLE_TRY(const auto now, tpu.node(node.zone, node.id));
        Texts metadata = now.metadata;
        metadata[kDeadlineKey] = deadline;
        return tpu.patch_metadata(node.zone, node.id, metadata);
      },
      [&] {
        const auto now = tpu.node(node.zone, node.id);
        if (!now) return false;
        const auto found = now->metadata.find(kDeadlineKey);
        return found != now->metadata.end() && found->second == deadline;
      });
}

Done EndMover::run() {
  switch (step_.part) {
    case Part::kNetwork:
      return {};  // a network cannot be changed
    case Part::kFirewall:
      return firewall();
    case Part::kNfs:
      return share();
    case Part::kDisk:
      return labels_of_compute("disks");
    case Part::kPrepare:
    case Part::kMachine:
      GOOGLE_OK(boot_disk());
      return labels_of_compute("instances");
    case Part::kBucket:
      return bucket();
    case Part::kTpu:
      return slice();
  }
  return {};
}

}  // namespace

Done move_end(Cloud& cloud, const Step& step, const Mark& mark) { return EndMover(cloud, step, mark).run(); }

}  // namespace sluice::provision
