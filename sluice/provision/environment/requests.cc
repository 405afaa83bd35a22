#include "sluice/provision/environment/requests.h"

#include <algorithm>
#include <cmath>

#include "sluice/base/text/join.h"
#include "sluice/pod/ssh/quote.h"

namespace sluice::provision {
namespace {

using base::str;
using google::Json;

std::string exports(const Settings& settings, const Variables& variables) {
  std::string text = "export ENVIRONMENT_NAME=" + pod::quote(settings.name) + "\n";
  if (settings.bucket)
    text += "export ENVIRONMENT_BUCKET=" + pod::quote("gs://" + bucket_name(settings)) + "\n";
  if (settings.nfs) text += "export ENVIRONMENT_NFS=" + pod::quote(settings.nfs->mount) + "\n";
  if (settings.disk) text += "export ENVIRONMENT_DISK=" + pod::quote(settings.disk->mount) + "\n";
  for (const auto& [name, value] : variables) text += "export " + name + "=" + pod::quote(value) + "\n";
  return text;
}

// The metadata hold the user's script as it is, so that nothing in it needs quoting.
constexpr const char* kFetch = R"(
metadata=http://metadata.google.internal/computeMetadata/v1/instance
fetch() { curl -sf --retry 5 -H 'Metadata-Flavor: Google' "$metadata/attributes/$1"; }
)";

std::string full_network(const Settings& settings) {
  if (settings.network.find('/') != std::string::npos) return settings.network;
  return str("projects/", settings.project, "/global/networks/",
             settings.network.empty() ? network_name(settings.name) : settings.network);
}

google::Texts disk_labels(const Settings& settings, const Mark& mark) {
  google::Texts labels = labels_of(mark);
  labels[kScriptLabel] = script_label(settings);
  return labels;
}

Json items(const google::Texts& metadata) {
  Json list = Json::array();
  for (const auto& [key, value] : metadata) list.push_back({{"key", key}, {"value", value}});
  return {{"items", list}};
}

Json boot_disk(const Settings& settings, const Mark& mark, const std::string& image, double gb) {
  return {{"boot", true},
          {"autoDelete", true},
          {"initializeParams",
           {{"sourceImage", image},
            {"diskSizeGb", str(static_cast<long long>(gb))},
            {"diskType",
             str("projects/", settings.project, "/zones/", settings.zone(), "/diskTypes/pd-balanced")},
            {"labels", labels_of(mark)}}}};
}

Json data_disk(const Settings& settings, const char* mode) {
  return {{"source", str("projects/", settings.project, "/zones/", settings.zone(), "/disks/",
                         disk_name(settings.name))},
          {"mode", mode},
          {"deviceName", "sluice-data"},
          {"autoDelete", false}};
}

// Returns the body of an instance without its disks and metadata.
Json instance_body(const Settings& settings, const Mark& mark, const std::string& name,
                   const std::string& type) {
  return {{"name", name},
          {"machineType", str("zones/", settings.zone(), "/machineTypes/", type)},
          {"labels", labels_of(mark)},
          {"tags", {{"items", {network_tag(settings.name)}}}},
          {"networkInterfaces",
           {{{"network", full_network(settings)},
             {"accessConfigs", {{{"type", "ONE_TO_ONE_NAT"}, {"name", "External NAT"}}}}}}},
          {"serviceAccounts",
           {{{"email", settings.service_account.empty() ? "default" : settings.service_account},
             {"scopes", settings.scopes}}}}};
}

// Lets the service delete the instance after `seconds`, also when no client is left.
void limit_run(Json& body, double seconds) {
  constexpr double kShortest = 30, kLongest = 120 * 86400;
  body["scheduling"]["maxRunDuration"] = {
      {"seconds", str(static_cast<long long>(std::clamp(seconds, kShortest, kLongest)))}};
  body["scheduling"]["instanceTerminationAction"] = "DELETE";
}

}  // namespace

Json network_body(const Settings& settings, const Mark& mark) {
  return {{"name", network_name(settings.name)},
          {"description", description_of(mark)},
          {"autoCreateSubnetworks", true}};
}

std::vector<std::string> firewall_ranges(const Settings& settings, const std::string& rule) {
  if (rule != "ssh") return {kAutomaticRange};
  std::vector<std::string> ranges = settings.ssh_from;
  ranges.emplace_back(kProxyRange);
  std::sort(ranges.begin(), ranges.end());
  ranges.erase(std::unique(ranges.begin(), ranges.end()), ranges.end());
  return ranges;
}

Json firewall_body(const Settings& settings, const Mark& mark, const std::string& rule) {
  Json body = {{"name", firewall_name(settings.name, rule)},
               {"description", description_of(mark)},
               {"network", full_network(settings)},
               {"direction", "INGRESS"},
               {"targetTags", {network_tag(settings.name)}}};
  body["sourceRanges"] = firewall_ranges(settings, rule);
  if (rule == "ssh") {
    body["allowed"] = {{{"IPProtocol", "tcp"}, {"ports", {"22"}}}};
  } else {
    body["allowed"] = {{{"IPProtocol", "tcp"}}, {{"IPProtocol", "udp"}}, {{"IPProtocol", "icmp"}}};
  }
  return body;
}

std::vector<std::string> nfs_clients(const Settings& settings) {
  if (!settings.nfs->clients.empty() || !settings.network.empty()) return settings.nfs->clients;
  return {kAutomaticRange};
}

Json file_shares(const Settings& settings, double size_gb) {
  Json share = {{"name", settings.nfs->share}, {"capacityGb", str(static_cast<long long>(size_gb))}};
  const auto rule = [&](const std::vector<std::string>& ranges, const char* squash) {
    Json exported = {{"accessMode", "READ_WRITE"}, {"squashMode", squash}};
    if (!ranges.empty()) exported["ipRanges"] = ranges;
    share["nfsExportOptions"].push_back(exported);
  };
  const auto& root_from = settings.nfs->root_from;
  if (!root_from.empty()) rule(root_from, "NO_ROOT_SQUASH");
  rule(nfs_clients(settings), root_from.empty() ? "NO_ROOT_SQUASH" : "ROOT_SQUASH");
  return {share};
}

Json nfs_body(const Settings& settings, const Mark& mark) {
  return {{"tier", settings.nfs->tier},
          {"labels", labels_of(mark)},
          {"fileShares", file_shares(settings, settings.nfs->size_gb)},
          {"networks",
           {{{"network", settings.network.empty() ? network_name(settings.name) : settings.network},
             {"modes", {"MODE_IPV4"}}}}}};
}

Json disk_body(const Settings& settings, const Mark& mark) {
  google::Texts labels = disk_labels(settings, mark);
  Json body = {{"name", disk_name(settings.name)},
               {"sizeGb", str(static_cast<long long>(settings.disk->size_gb))},
               {"type", str("projects/", settings.project, "/zones/", settings.zone(), "/diskTypes/",
                            disk_type(settings))}};
  if (!settings.disk->snapshot.empty()) {
    const std::string& name = settings.disk->snapshot;
    body["sourceSnapshot"] = name.find('/') == std::string::npos
                                 ? str("projects/", settings.project, "/global/snapshots/", name)
                                 : name;
    labels[kDataLabel] = "ready";
  }
  body["labels"] = labels;
  return body;
}

std::string prepare_script(const Settings& settings) {
  const DiskSettings& disk = *settings.disk;
  return str("#!/bin/bash\n# Fills the disk of the environment ", settings.name,
             ", and says so in guest attributes and on the serial port.\n", kFetch,
             exports(settings, disk.variables), "mount=", pod::quote(disk.mount), R"(
device=/dev/disk/by-id/google-sluice-data
log=/var/log/sluice-prepare.log
put() { curl -sf --retry 5 -X PUT -H 'Metadata-Flavor: Google' --data-binary @- "$metadata/guest-attributes/sluice/$1"; }
finish() {
  tail -n 40 "$log" | tail -c 4000 | put tail
  echo -n "$1" | put status
  echo "sluice-prepare: exit status $1"
  exit 0
}
exec > >(tee -a "$log") 2>&1
for _ in $(seq 60); do [ -e "$device" ] && break; sleep 2; done
if ! blkid "$device" > /dev/null; then mkfs.ext4 -q -L sluice-data -E lazy_itable_init=0,lazy_journal_init=0 "$device" || finish 1; fi
mkdir -p "$mount"
mountpoint -q "$mount" || mount -o discard "$device" "$mount" || finish 1
resize2fs "$device" || finish 1
fetch sluice-script > /run/sluice-script || finish 1
chmod 700 /run/sluice-script
mount -o remount,exec /run 2> /dev/null
cd "$mount" && /run/sluice-script
status=$?
cd /
sync
if [ "$status" = 0 ]; then umount "$mount" || finish 1; fi
finish "$status"
)");
}

Json prepare_body(const Settings& settings, const Mark& mark) {
  const DiskSettings& disk = *settings.disk;
  constexpr double kBootGb = 50, kSpare = 3600;
  Json body = instance_body(settings, mark, prepare_name(settings.name), disk.machine);
  body["labels"][kScriptLabel] = script_label(settings);
  body["disks"] = {boot_disk(settings, mark, disk.image, kBootGb), data_disk(settings, "READ_WRITE")};
  body["metadata"] = items({{"enable-guest-attributes", "TRUE"},
                            {"startup-script", prepare_script(settings)},
                            {"sluice-script", disk.script->text}});
  limit_run(body, disk.timeout + kSpare);
  return body;
}

std::string start_script(const Settings& settings, const std::string& share_address,
                         const Variables& variables) {
  std::string text = str("#!/bin/bash\n# Prepares a host of the environment ", settings.name, ".\n", kFetch,
                         exports(settings, variables));
  if (settings.nfs)
    text += str("share=", pod::quote(share_address + ":/" + settings.nfs->share),
                " mount=", pod::quote(settings.nfs->mount),
                R"(
command -v mount.nfs > /dev/null || { apt-get -qq update; apt-get -qq -y install nfs-common; }
mkdir -p "$mount"
for _ in $(seq 30); do mountpoint -q "$mount" && break; mount -t nfs -o nosuid,nodev "$share" "$mount" && break; sleep 10; done
)");
  if (settings.disk)
    text += str("mount=", pod::quote(settings.disk->mount), R"(
device=/dev/disk/by-label/sluice-data
for _ in $(seq 60); do [ -e "$device" ] && break; sleep 2; done
mkdir -p "$mount"
mountpoint -q "$mount" || mount -o ro,noload,nosuid,nodev "$device" "$mount"
)");
  return text + R"(
if fetch sluice-setup > /run/sluice-setup && [ -s /run/sluice-setup ]; then
  chmod 700 /run/sluice-setup
  mount -o remount,exec /run 2> /dev/null
  /run/sluice-setup > /var/log/sluice-setup.log 2>&1
  echo "sluice-setup: exit status $?"
fi
)";
}

Json machine_body(const Settings& settings, const Mark& mark, const std::string& name,
                  const std::string& share_address, double now) {
  const MachineSettings& machines = *settings.machines;
  Json body = instance_body(settings, mark, name, machines.type);
  body["disks"] = {boot_disk(settings, mark, machines.image, machines.boot_disk_gb)};
  if (settings.disk) body["disks"].push_back(data_disk(settings, "READ_ONLY"));
  google::Texts metadata = {{"enable-guest-attributes", "TRUE"},
                            {"startup-script", start_script(settings, share_address, machines.variables)}};
  if (machines.setup) metadata["sluice-setup"] = machines.setup->text;
  body["metadata"] = items(metadata);
  if (machines.spot)
    body["scheduling"] = {{"provisioningModel", "SPOT"},
                          {"automaticRestart", false},
                          {"onHostMaintenance", "TERMINATE"},
                          {"instanceTerminationAction", "DELETE"}};
  if (mark.expires > 0) limit_run(body, mark.expires - now);
  return body;
}

Json bucket_body(const Settings& settings, const Mark& mark) {
  const BucketSettings& bucket = *settings.bucket;
  return {{"name", bucket_name(settings)},
          {"location", bucket.location.empty() ? google::region_of_zone(settings.zone()) : bucket.location},
          {"storageClass", bucket.storage_class.empty() ? "STANDARD" : bucket.storage_class},
          {"labels", labels_of(mark)},
          {"iamConfiguration",
           {{"uniformBucketLevelAccess", {{"enabled", true}}}, {"publicAccessPrevention", "enforced"}}}};
}

SliceWish tpu_wish(const Settings& settings, const Mark& mark, const std::string& share_address, double now) {
  const TpuSettings& tpu = *settings.tpu;
  SliceWish wish;
  wish.name = tpu_name(settings.name);
  wish.type = tpu.type;
  wish.zones = settings.zones;
  wish.capacity = tpu.capacity;
  wish.reservation = tpu.reservation;
  wish.flex_duration = tpu.flex_duration;
  wish.idle = settings.idle;
  if (tpu.wait > 0) wish.wait_until = now + tpu.wait;
  wish.slices = tpu.slices;
  wish.runtime = tpu.runtime;
  wish.service_account = settings.service_account;
  wish.scopes = settings.scopes;
  wish.network = full_network(settings);
  wish.startup_script = start_script(settings, share_address, tpu.variables);
  if (tpu.setup) wish.metadata["sluice-setup"] = tpu.setup->text;
  wish.tags = {network_tag(settings.name)};
  if (settings.disk)
    wish.data_disks = {{{"sourceDisk", str("projects/", settings.project, "/zones/", settings.zone(),
                                           "/disks/", disk_name(settings.name))},
                        {"mode", "READ_ONLY"}}};
  wish.mark = mark;
  return wish;
}

}  // namespace sluice::provision
