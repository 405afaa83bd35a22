#include "sluice/provision/environment/checks.h"

#include <algorithm>
#include <map>
#include <set>

#include "sluice/base/text/join.h"
#include "sluice/base/text/lower_case.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"
#include "sluice/google/projects.h"
#include "sluice/pod/record.h"
#include "sluice/provision/compute_slices.h"
#include "sluice/provision/quota.h"

namespace sluice::provision {
namespace {

using base::str;
using google::Kind;

bool not_told(const google::Failure& failure) {
  return failure.kind == Kind::kForbidden || failure.kind == Kind::kApiDisabled ||
         failure.kind == Kind::kInvalid || failure.kind == Kind::kNotFound;
}

std::vector<std::string> services(const Settings& settings) {
  std::vector<std::string> needed = {"compute.googleapis.com"};
  if (settings.tpu) needed.emplace_back("tpu.googleapis.com");
  if (settings.nfs) needed.emplace_back("file.googleapis.com");
  return needed;
}

bool is_group(const TpuSettings& tpu) {
  const auto type = estimate::find_tpu_slice(tpu.type);
  return type && is_compute_type(*type);
}

std::vector<std::string> permissions(const Settings& settings) {
  std::vector<std::string> needed = {"compute.firewalls.create", "compute.firewalls.delete",
                                     "compute.networks.updatePolicy"};
  const auto add = [&](std::initializer_list<const char*> more) {
    needed.insert(needed.end(), more.begin(), more.end());
  };
  if (settings.network.empty()) add({"compute.networks.create", "compute.networks.delete"});
  if (settings.machines || settings.disk)
    add({"compute.instances.create", "compute.instances.delete", "compute.disks.create"});
  if (settings.disk)
    add({"compute.disks.delete", "compute.disks.setLabels", "compute.instances.getGuestAttributes"});
  if (settings.tpu && is_group(*settings.tpu)) {
    add({"compute.instanceGroupManagers.create", "compute.instanceGroupManagers.delete",
         "compute.instanceTemplates.create", "compute.instanceTemplates.delete"});
  } else if (settings.tpu) {
    add({"tpu.nodes.create", "tpu.nodes.delete"});
  }
  if (settings.nfs) add({"file.instances.create", "file.instances.delete"});
  if (settings.bucket) add({"storage.buckets.create", "storage.buckets.delete"});
  return needed;
}

bool has(const Plan& plan, Act act, Part part) {
  return std::any_of(plan.steps.begin(), plan.steps.end(),
                     [&](const Step& step) { return step.act == act && step.part == part; });
}

google::Done check_type(Cloud& cloud, const Settings& settings, Findings& findings) {
  const std::string& type = settings.tpu->type;
  std::vector<std::string> lacking;
  for (const std::string& zone : settings.zones) {
    const auto types = cloud.tpu().accelerator_types(zone);
    if (!types && (not_told(types.error()) || types.error().kind == Kind::kPassing)) {
      if (types.error().kind != Kind::kApiDisabled)
        findings.warnings.push_back(str("which types ", zone, " has is not known: ", types.error().what()));
      continue;
    }
    if (!types) return tl::unexpected<google::Failure>(types.error());
    if (std::find(types->begin(), types->end(), type) == types->end()) lacking.push_back(zone);
  }
  if (lacking.empty()) return {};
  std::vector<std::string> unreachable;
  GOOGLE_TRY(const auto zones, zones_with(cloud, type, &unreachable));
  const std::string where =
      zones.empty() ? "no zone of this project has it" : "zones that have it: " + base::join(zones, ", ");
  const std::string text =
      str(base::join(lacking, ", "), lacking.size() > 1 ? " have" : " has", " no ", type, "; ", where);
  (lacking.size() == settings.zones.size() ? findings.problems : findings.warnings).push_back(text);
  return {};
}

// Asks Google whether it has the name that the key gives; if not, adds a problem with the nearest name.
google::Done check_known(Cloud& cloud, const google::Scope& scope, const std::string& collection,
                         const std::string& key, const std::string& name, Findings& findings) {
  google::Compute compute = cloud.compute();
  const auto there = compute.get(scope, collection, name);
  if (there) return {};
  if (there.error().kind != Kind::kNotFound)
    return not_told(there.error()) ? google::Done() : tl::unexpected<google::Failure>(there.error());
  std::vector<std::string> known;
  if (const auto all = compute.list(scope, collection); all)
    for (const google::Json& one : all->items) known.push_back(google::text(one, "name"));
  const std::string near = base::nearest(name, known);
  findings.problems.push_back(str(key, ": ", scope.name.empty() ? cloud.project : scope.name, " has no ",
                                  name, " among its ", collection,
                                  near.empty() ? "" : str("; did you mean ", near, "?")));
  return {};
}

google::Done check_zones(Cloud& cloud, const Settings& settings, Findings& findings) {
  const auto zones = cloud.compute().zones();
  if (!zones && not_told(zones.error())) return {};
  if (!zones) return tl::unexpected<google::Failure>(zones.error());
  for (const std::string& zone : settings.zones) {
    if (std::find(zones->begin(), zones->end(), zone) != zones->end()) continue;
    const std::string near = base::nearest(zone, *zones);
    findings.problems.push_back(
        str("env.zones: there is no zone ", zone, near.empty() ? "" : str("; did you mean ", near, "?")));
  }
  return {};
}

// Checks the names of Google's resources in the file, but only for parts that the plan creates.
google::Done check_names(Cloud& cloud, const Settings& settings, const Plan& plan, Findings& findings) {
  const google::Scope zone = google::Scope::zone(settings.zone());
  if (has(plan, Act::kCreate, Part::kMachine))
    GOOGLE_OK(check_known(cloud, zone, "machineTypes", "machines.type", settings.machines->type, findings));
  if (has(plan, Act::kFill, Part::kPrepare))
    GOOGLE_OK(check_known(cloud, zone, "machineTypes", "disk.machine", settings.disk->machine, findings));
  if (has(plan, Act::kCreate, Part::kDisk))
    GOOGLE_OK(check_known(cloud, zone, "diskTypes", "disk.type", disk_type(settings), findings));
  const bool own_project = settings.network.find('/') == std::string::npos;
  if (has(plan, Act::kCreate, Part::kFirewall) && !settings.network.empty() && own_project)
    return check_known(cloud, google::Scope::global(), "networks", "env.network", settings.network, findings);
  return {};
}

// Returns the vCPUs of "n1-standard-16"; 0 if the name does not contain them.
double cores_of(const std::string& type) {
  return base::number_of<double>(type.substr(type.rfind('-') + 1)).value_or(0);
}

google::Done check_quota(Cloud& cloud, const Settings& settings, const Plan& plan, Findings& findings) {
  std::map<std::string, double> wanted;
  for (const Step& step : plan.steps) {
    if (step.act == Act::kCreate && step.part == Part::kMachine) {
      wanted["CPUS"] += cores_of(settings.machines->type);
      wanted["INSTANCES"] += 1;
      wanted["SSD_TOTAL_GB"] += settings.machines->boot_disk_gb;
    }
    const std::string type = disk_type(settings);
    if (step.act == Act::kCreate && step.part == Part::kDisk && type.starts_with("pd-"))
      wanted[type == "pd-standard" ? "DISKS_TOTAL_GB" : "SSD_TOTAL_GB"] += settings.disk->size_gb;
  }
  if (wanted.empty()) return {};
  const std::string region = google::region_of_zone(settings.zone());
  const auto quotas = cloud.compute().region_quotas(region);
  if (!quotas && not_told(quotas.error())) return {};
  if (!quotas) return tl::unexpected<google::Failure>(quotas.error());
  for (const google::Quota& quota : *quotas) {
    const auto want = wanted.find(quota.name);
    if (want == wanted.end() || quota.used + want->second <= quota.limit) continue;
    findings.problems.push_back(str("quota ", quota.name, " in ", region, ": limit ", quota.limit, ", used ",
                                    quota.used, ", wanted ", want->second,
                                    " more. Ask for more at Quotas in the console, or use another region"));
  }
  return {};
}

bool is_same(const Slice& a, const Slice& b) { return a.name == b.name && a.zone == b.zone; }

// One zone with room is enough: creating the slice skips the others.
google::Done check_tpu_quota(Cloud& cloud, const Settings& settings, const Survey& survey, const Plan& plan,
                             Findings& findings) {
  const TpuSettings& tpu = *settings.tpu;
  std::vector<Slice> others = survey.slices;  // the slices that exist when this one is requested
  for (const Step& step : plan.steps) {
    if (step.part != Part::kTpu || !step.piece) continue;
    if (step.act == Act::kCreate) return {};  // it is being created, and already counted
    if (step.act == Act::kDelete)
      std::erase_if(others, [&](const Slice& slice) { return is_same(slice, *step.piece->slice); });
  }
  const auto quotas = tpu_quotas(cloud, others);
  if (!quotas && (not_told(quotas.error()) || quotas.error().kind == Kind::kPassing)) return {};
  if (!quotas) return tl::unexpected<google::Failure>(quotas.error());
  const auto type = estimate::find_tpu_slice(tpu.type);
  if (!type) return {};
  std::vector<std::string> lacking;
  for (const std::string& zone : settings.zones)
    if (const auto quota = lacking_quota(*quotas, *type, tpu.capacity, tpu.slices, zone))
      lacking.push_back(str(
          "quota ", quota->name, " in ", quota->place, ": limit ", quota->limit, ", used ", quota->used,
          ", wanted ", quota_count(*type, tpu.slices), " more for ", tpu.type, " (",
          capacity_name(tpu.capacity), ") in ", zone,
          ". Ask for more at Quotas in the console (of tpu.googleapis.com), or use another zone or capacity: "
          "sluice tpu quota lists what there is"));
  auto& said = lacking.size() == settings.zones.size() ? findings.problems : findings.warnings;
  said.insert(said.end(), lacking.begin(), lacking.end());
  return {};
}

void check_bucket(const Settings& settings, const Plan& plan, Findings& findings) {
  const std::string region = google::region_of_zone(settings.zone());
  for (const Step& step : plan.steps) {
    if (step.part != Part::kBucket || step.act == Act::kKeep || step.act == Act::kDelete) continue;
    const std::string place = base::lower_case(step.zone);
    const bool inside = place == region || (place == "us" && region.starts_with("us-")) ||
                        (place == "eu" && region.starts_with("europe-")) ||
                        (place == "asia" && region.starts_with("asia-"));
    if (!inside)
      findings.warnings.push_back(
          str("the bucket ", step.name, " is in ", place, ", the machines are in ", region,
              ": what is read crosses regions, is slow and costs; set bucket.location"));
  }
}

std::string without_user(const std::string& host) { return host.substr(host.find('@') + 1); }

}  // namespace

google::Outcome<Findings> check_project(Cloud& cloud, const Settings& settings, const Survey& survey,
                                        const Plan& plan) {
  Findings findings;
  google::Projects projects(*cloud.api, cloud.project);
  const auto disabled = projects.disabled(services(settings));
  if (!disabled && !not_told(disabled.error())) return tl::unexpected<google::Failure>(disabled.error());
  if (disabled && !disabled->empty())
    findings.problems.push_back(str("the project ", cloud.project, " has not enabled ",
                                    base::join(*disabled, ", "), ": ", projects.enable_command(*disabled)));
  const auto missing = projects.missing_permissions(permissions(settings));
  if (!missing && !not_told(missing.error())) return tl::unexpected<google::Failure>(missing.error());
  if (missing && !missing->empty())
    findings.problems.push_back(str("you may not ", base::join(*missing, ", "), " in ", cloud.project,
                                    ": ask whoever owns the project for these permissions"));
  if (!findings.problems.empty() || !plan.changes()) return findings;
  GOOGLE_OK(check_zones(cloud, settings, findings));
  if (!findings.problems.empty()) return findings;
  GOOGLE_OK(check_names(cloud, settings, plan, findings));
  // Compute Engine reports which zones have the machines of a group only when they are requested.
  if (settings.tpu && !is_group(*settings.tpu) && has(plan, Act::kCreate, Part::kTpu)) {
    GOOGLE_OK(check_type(cloud, settings, findings));
    GOOGLE_OK(check_tpu_quota(cloud, settings, survey, plan, findings));
  }
  GOOGLE_OK(check_quota(cloud, settings, plan, findings));
  check_bucket(settings, plan, findings);
  return findings;
}

std::vector<std::string> active_runs(const std::vector<Piece>& pieces) {
  std::set<std::string> places;
  for (const Piece& piece : pieces) {
    if (piece.part != Part::kMachine && piece.part != Part::kTpu) continue;
    places.insert(piece.name);
    if (!piece.address.empty()) places.insert(piece.address);
    if (!piece.slice) continue;
    for (const google::Endpoint& host : piece.slice->hosts()) {
      if (!host.internal_ip.empty()) places.insert(host.internal_ip);
      if (!host.external_ip.empty()) places.insert(host.external_ip);
    }
  }
  std::vector<std::string> runs;
  for (const pod::RunRecord& run : pod::list_runs()) {
    if (run.is_over()) continue;
    const bool here =
        std::any_of(run.job.workers.begin(), run.job.workers.end(), [&](const pod::Worker& worker) {
          return places.count(without_user(worker.host)) != 0 || places.count(worker.address) != 0;
        });
    if (here) runs.push_back(run.job.id);
  }
  return runs;
}

}  // namespace sluice::provision
