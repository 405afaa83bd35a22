#include "sluice/provision/environment/resource.h"

#include "sluice/base/text/join.h"
#include "sluice/google/filestore.h"
#include "sluice/provision/slice_state.h"

namespace sluice::provision {
namespace {

using google::Done;
using google::Failure;
using google::Json;
using google::Kind;
using google::Outcome;

constexpr int kTries = 5;          // for a request that had no effect
constexpr double kTimeout = 1800;  // seconds until a resource is ready or gone

// Returns whether another try would fail in the same way.
bool is_final(const Failure& failure) {
  switch (failure.kind) {
    case Kind::kForbidden:
    case Kind::kApiDisabled:
    case Kind::kCredentials:
    case Kind::kCancelled:
    case Kind::kQuota:
    case Kind::kInvalid:
      return true;
    default:
      return false;
  }
}

tl::unexpected<Failure> still(const std::string& what, const char* state, const Failure& last) {
  return tl::unexpected<Failure>(
      Failure(last.kind, last.code(), base::str(what, " is ", state, ": ", last.what())));
}

// Waits until the resource is ready; returns nothing if it vanishes meanwhile.
Outcome<std::optional<Json>> until_ready(Cloud& cloud, const std::string& environment,
                                         const Resource& resource) {
  Pause pause(cloud);
  const double begin = cloud.api->clock().now();
  double said = begin;
  while (true) {
    const auto found = resource.look();
    if (!found && found.error().kind == Kind::kNotFound) return std::optional<Json>();
    if (!found) return tl::unexpected<Failure>(found.error());
    if (const auto may = may_adopt(resource.mark(*found), environment, resource.what); !may)
      return google::failed(Kind::kExists, Code::kAlreadyExists, may.error().what());
    GOOGLE_TRY(const bool ready, resource.ready(*found));
    if (ready) return std::optional<Json>(*found);
    const double now = cloud.api->clock().now();
    if (now - begin > kTimeout)
      return google::failed(Kind::kPassing, Code::kDeadlineExceeded, resource.what, " is not ready after ",
                            kTimeout, " s: run the same command again to continue waiting");
    if (now - said >= 30) {
      cloud.say(base::str("  ", resource.what, ": not ready yet, ", static_cast<int>(now - begin), " s"));
      said = now;
    }
    GOOGLE_OK(pause.next());
  }
}

google::Wait patient(Cloud& cloud, const std::function<bool()>& enough) {
  google::Wait how = google::default_wait(*cloud.api);
  how.timeout = kTimeout;
  how.enough = enough;
  return how;
}

}  // namespace

Outcome<Json> make(Cloud& cloud, const std::string& environment, const Resource& resource,
                   bool begun_before) {
  if (begun_before && !cloud.api->dry_run()) {
    GOOGLE_TRY(const std::optional<Json> made, until_ready(cloud, environment, resource));
    if (made) return *made;
  }
  Failure last(Kind::kOther, Code::kInternal, "it was not made");
  Pause pause(cloud);
  const double end = cloud.api->clock().now() + kTimeout;
  for (int tries = 0; tries < kTries;) {
    const auto begun = resource.create();
    if (cloud.api->dry_run()) return Json::object();
    if (!begun && is_final(begun.error())) return tl::unexpected<Failure>(begun.error());
    if (!begun) last = begun.error();
    const bool exists = !begun && begun.error().kind == Kind::kExists;
    // A resource that it needs is still being created, perhaps by a killed run: that ends.
    const bool busy = !begun && begun.error().kind == Kind::kWrongState;
    if (begun) {
      // If the resource exists and is ready, its operation need not end.
      const auto there = [&] {
        const auto found = resource.look();
        const auto ready = found ? resource.ready(*found) : Outcome<bool>(false);
        return ready && *ready;
      };
      if (auto done = google::wait(*cloud.api, *begun, patient(cloud, there)); !done) {
        if (is_final(done.error())) return tl::unexpected<Failure>(done.error());
        last = done.error();
        cloud.say(base::str("  ", last.what(), ": looking at what is there"));
      }
    }
    if (begun || exists) {
      GOOGLE_TRY(const std::optional<Json> made, until_ready(cloud, environment, resource));
      if (made) return *made;
    }
    if (!busy || cloud.api->clock().now() > end) ++tries;
    GOOGLE_OK(pause.next());
  }
  return still(resource.what, "not there", last);
}

Done unmake(Cloud& cloud, const std::string& environment, const Resource& resource) {
  Failure last(Kind::kOther, Code::kInternal, "it was not deleted");
  Pause pause(cloud);
  const double end = cloud.api->clock().now() + kTimeout;
  const auto gone = [&] {
    const auto found = resource.look();
    return !found && found.error().kind == Kind::kNotFound;
  };
  for (int tries = 0; tries < kTries;) {
    const auto found = resource.look();
    if (!found && found.error().kind == Kind::kNotFound) return {};
    if (!found) return tl::unexpected<Failure>(found.error());
    // The mark is checked again right before: by now the name may belong to somebody else.
    if (whose(resource.mark(*found), environment) != Whose::kOurs)
      return google::failed(Kind::kExists, Code::kAlreadyExists, resource.what, " is not of the environment ",
                            environment, " any more: it is left alone");
    const auto begun = resource.remove();
    if (cloud.api->dry_run() || (!begun && begun.error().kind == Kind::kNotFound)) return {};
    const bool busy = !begun && begun.error().kind == Kind::kWrongState;
    if (!begun && !busy && begun.error().kind != Kind::kPassing)
      return tl::unexpected<Failure>(begun.error());
    if (!begun) last = begun.error();
    if (begun) {
      if (auto done = google::wait(*cloud.api, *begun, patient(cloud, gone)); !done) {
        if (is_final(done.error())) return done;
        last = done.error();
        cloud.say(base::str("  ", last.what(), ": looking at what is there"));
      }
      if (gone()) return {};
    }
    if (!busy || cloud.api->clock().now() > end) ++tries;
    GOOGLE_OK(pause.next());
  }
  return still(resource.what, "still there", last);
}

Done change(Cloud& cloud, const std::string& what, const std::function<Outcome<google::Operation>()>& request,
            const std::function<bool()>& changed) {
  Failure last(Kind::kOther, Code::kInternal, "it was not changed");
  Pause pause(cloud);
  for (int tries = 0; tries < kTries; ++tries) {
    const auto begun = request();
    if (begun && cloud.api->dry_run()) return {};
    if (!begun && is_final(begun.error()) && !changed()) return tl::unexpected<Failure>(begun.error());
    if (!begun) last = begun.error();
    if (begun) {
      const auto done = google::wait(*cloud.api, *begun, patient(cloud, nullptr));
      if (!done && done.error().kind == Kind::kCancelled) return done;
      if (!done) last = done.error();
    }
    if (changed()) return {};
    GOOGLE_OK(pause.next());
  }
  return still(what, "not changed", last);
}

Resource compute_resource(Cloud& cloud, const google::Scope& scope, const std::string& collection,
                          const std::string& name, const Json& body) {
  Resource resource;
  resource.what = base::str(collection, "/", name, scope.name.empty() ? "" : " in " + scope.name);
  resource.look = [&cloud, scope, collection, name] { return cloud.compute().get(scope, collection, name); };
  resource.create = [&cloud, scope, collection, body] {
    return cloud.compute().insert(scope, collection, body);
  };
  resource.remove = [&cloud, scope, collection, name] {
    return cloud.compute().remove(scope, collection, name);
  };
  resource.mark = [](const Json& json) {
    const auto mark = mark_of_labels(google::texts(json, "labels"));
    return mark ? mark : mark_of_description(google::text(json, "description"));
  };
  resource.ready = [](const Json& json) -> Outcome<bool> {
    const std::string status = google::text(json, "status");
    return status.empty() || status == "READY" || status == "RUNNING" || status == "TERMINATED";
  };
  return resource;
}

Resource share_resource(Cloud& cloud, const std::string& zone, const std::string& id, const Json& body) {
  Resource resource;
  const auto shares = [&cloud] { return google::Filestores(*cloud.api, cloud.project); };
  resource.what = base::str("the share ", id, " in ", zone);
  resource.look = [shares, zone, id]() -> Outcome<Json> {
    GOOGLE_TRY(const auto share, shares().get(zone, id));
    return share.json;
  };
  resource.create = [shares, zone, id, body] { return shares().create(zone, id, body); };
  resource.remove = [shares, zone, id] { return shares().remove(zone, id); };
  resource.mark = [](const Json& json) { return mark_of_labels(google::texts(json, "labels")); };
  resource.ready = [what = resource.what](const Json& json) -> Outcome<bool> {
    const std::string state = google::text(json, "state");
    if (state == "ERROR")
      return google::failed(Kind::kWrongState, Code::kFailedPrecondition, what,
                            " is in state ERROR: ", google::text(json, "statusMessage"),
                            ". Destroy it (--only nfs) and apply again");
    return state == "READY";
  };
  return resource;
}

}  // namespace sluice::provision
