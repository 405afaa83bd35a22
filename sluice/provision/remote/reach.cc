#include "sluice/provision/remote/reach.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "sluice/base/environment.h"
#include "sluice/base/file.h"
#include "sluice/google/operation.h"
#include "sluice/provision/remote/host_keys.h"
#include "sluice/provision/remote/keys.h"
#include "sluice/provision/remote/shell.h"
#include "sluice/provision/remote/ssh_config.h"

namespace sluice::provision {
namespace {
using google::Kind;

constexpr double kHostKeySeconds = 60;  // for a new machine's agent to publish them
constexpr double kNewKeySeconds = 90;   // for its agent to take a key over
constexpr int kConnectionsAtOnce = 32;  // each worker has an sshd of its own

bool is_true(const google::Texts& metadata, const std::string& name) {
  const auto found = metadata.find(name);
  if (found == metadata.end()) return false;
  return base::switch_of(found->second).value_or(false);
}

std::string entry_of(const google::Texts& metadata, const std::string& name) {
  const auto found = metadata.find(name);
  return found == metadata.end() ? std::string() : found->second;
}

google::Done check_up(const Slice& slice) {
  if (slice.compute)
    return google::failed(
        Kind::kInvalid, Code::kUnimplemented, slice.name, " (", slice.type,
        ") is a group of Compute Engine instances: reach them by `gcloud compute config-ssh` "
        "and `sluice run --hosts …`, in the order in which `sluice tpu show` has them");
  if (slice.ready() && !slice.nodes.empty()) return {};
  const bool dead = is_dead(slice.state);
  return google::failed(Kind::kWrongState, Code::kFailedPrecondition, slice.name, " in ", slice.zone, " is ",
                        slice.state, ", expected READY: ",
                        dead
                            ? "it never will be again; delete it and make another, or let `sluice keep` do so"
                            : base::str("`sluice tpu wait ", slice.name, "` waits for it"));
}

// Of the project; nothing where the caller may not read it or has no Compute Engine, as the node's own will
// do.
google::Texts project_metadata(Cloud& cloud) {
  google::Texts metadata;
  const auto project = cloud.compute().project_json();
  if (!project) return metadata;
  for (const auto& item : google::elements(*project, "commonInstanceMetadata.items"))
    metadata[google::text(item, "key")] = google::text(item, "value");
  return metadata;
}

google::Done refuse_os_login(const Slice& slice, const ReachOptions& options, const KeyPair& key) {
  if (!options.user.empty()) return {};  // whoever names the account has seen to its keys
  return google::failed(
      Kind::kForbidden, Code::kFailedPrecondition, slice.name,
      " demands OS Login (enable-oslogin=TRUE in its metadata or the project's): keys in metadata "
      "count for nothing there. Give your account the key with `gcloud compute os-login ssh-keys "
      "add --key-file=",
      key.path,
      ".pub`, and name the account: `--ssh-user` with what `gcloud "
      "compute os-login describe-profile` says");
}

google::Done add_key(Cloud& cloud, const google::Node& node, const std::string& user, const KeyPair& key) {
  google::Texts metadata = node.metadata;
  metadata["ssh-keys"] = with_key(entry_of(metadata, "ssh-keys"), user, key.public_key);
  cloud.say(base::str("adding ", user, "'s key to the metadata of ", node.id));
  auto tpu = cloud.tpu();
  GOOGLE_TRY(auto operation, tpu.patch_metadata(node.zone, node.id, metadata));
  const auto done = google::wait(*cloud.api, std::move(operation), google::default_wait(*cloud.api));
  if (done || cloud.api->dry_run()) return {};
  // The operation is not the last word: the node is.
  GOOGLE_TRY(const google::Node now, tpu.node(node.zone, node.id));
  if (has_key(entry_of(now.metadata, "ssh-keys"), user, key.public_key)) return {};
  return done;
}

// Puts the key where every worker looks for it; whether it was not there yet.
google::Outcome<bool> publish_key(Cloud& cloud, const Slice& slice, const ReachOptions& options,
                                  const std::string& user, const KeyPair& key) {
  std::optional<google::Texts> project;  // read when a node needs it
  bool is_new = false;
  for (const google::Node& node : slice.nodes) {
    if (is_true(node.metadata, "enable-oslogin")) {
      GOOGLE_OK(refuse_os_login(slice, options, key));
      continue;
    }
    if (has_key(entry_of(node.metadata, "ssh-keys"), user, key.public_key)) continue;
    if (!project) project = project_metadata(cloud);
    if (is_true(*project, "enable-oslogin") && node.metadata.count("enable-oslogin") == 0) {
      GOOGLE_OK(refuse_os_login(slice, options, key));
      continue;
    }
    if (!is_true(node.metadata, "block-project-ssh-keys") &&
        has_key(entry_of(*project, "ssh-keys"), user, key.public_key))
      continue;
    GOOGLE_OK(add_key(cloud, node, user, key));
    is_new = true;
  }
  return is_new;
}

// The agents of the workers take a new key over within seconds. What else is wrong is said when it is used.
void wait_for_key(Cloud& cloud, const ReachedSlice& reached) {
  std::vector<int> all(reached.hosts.size());
  std::iota(all.begin(), all.end(), 0);
  pod::Job job;
  fill_job(job, reached, all, 1);
  const double until = cloud.api->clock().now() + kNewKeySeconds;
  while (cloud.api->clock().now() < until) {
    const auto answers = run_scripts(job, "exit 0", kNewKeySeconds);
    const bool refused = std::any_of(answers.begin(), answers.end(), [](const Answer& answer) {
      return answer.messages.find("Permission denied") != std::string::npos;
    });
    if (!refused) return;
    cloud.api->clock().sleep(0.5, cloud.cancelled);
  }
}

// The host keys that the guest attributes have of these workers; a worker without any gets an empty list.
google::Outcome<std::vector<std::vector<HostKey>>> published_keys(Cloud& cloud, const google::Node& node,
                                                                  const std::vector<std::string>& workers) {
  auto tpu = cloud.tpu();
  GOOGLE_TRY(const auto attributes, tpu.guest_attributes(node.zone, node.id, "hostkeys/", workers));
  const auto keys = parse_guest_attributes(google::Json{{"guestAttributes", attributes}}.dump());
  if (!keys) return tl::unexpected<google::Failure>(keys.error());
  auto result = *keys;
  result.resize(workers.size());
  return result;
}

google::Done learn_keys_of(Cloud& cloud, const google::Node& node, std::string& known) {
  const std::string id = google::text(node.json, "id");
  std::vector<std::string> missing;
  for (size_t i = 0; i < node.endpoints.size(); ++i)
    if (!knows_host(known, host_key_alias(id, static_cast<int>(i)))) missing.push_back(std::to_string(i));
  const double until = cloud.api->clock().now() + kHostKeySeconds;
  while (!missing.empty()) {
    GOOGLE_TRY(const auto keys, published_keys(cloud, node, missing));
    std::vector<std::string> still;
    for (size_t i = 0; i < missing.size(); ++i) {
      if (keys[i].empty()) still.push_back(missing[i]);
      known = with_host(known, host_key_alias(id, std::stoi(missing[i])), keys[i]);
    }
    missing = std::move(still);
    if (missing.empty()) break;
    if (cloud.api->clock().now() >= until)
      return google::failed(
          Kind::kOther, Code::kUnavailable, "the workers ", base::join(missing, ", "), " of ", node.id,
          " have published no host keys (guest attributes hostkeys/), so that nobody "
          "could tell them from an impostor. Metadata enable-guest-attributes=TRUE lets them");
    cloud.api->clock().sleep(2, cloud.cancelled);
  }
  return {};
}

base::Status make_private_folder(const std::string& path) {
  SLUICE_OK(base::make_directories(path));
  ::chmod(path.c_str(), 0700);
  return {};
}

// Held while the file of host keys is read, extended and written: other programs do so too.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (descriptor_ >= 0) ::flock(descriptor_, LOCK_EX);
  }
  ~FileLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FileLock(const FileLock&) = delete;

 private:
  const int descriptor_;
};

google::Done learn_host_keys(Cloud& cloud, const Slice& slice, const std::string& known_path) {
  const FileLock lock(known_path + ".lock");
  const std::string before = base::read_file(known_path).value_or("");
  std::string known = before;
  google::Done learnt;
  for (const google::Node& node : slice.nodes) {
    learnt = learn_keys_of(cloud, node, known);
    if (!learnt) break;
  }
  if (known != before) {
    if (const auto written = base::write_file_atomically(known_path, known); !written)
      return tl::unexpected<google::Failure>(written.error());
  }
  return learnt;
}

SshSettings settings_of(const Slice& slice, const google::Node& node, size_t first) {
  SshSettings settings;
  settings.node = slice.name;
  settings.node_id = google::text(node.json, "id");
  settings.first = static_cast<int>(first);
  for (const google::Endpoint& endpoint : node.endpoints)
    settings.workers.push_back(
        {endpoint.external_ip.empty() ? endpoint.internal_ip : endpoint.external_ip, endpoint.internal_ip});
  return settings;
}

void warn_of_internal_addresses(Cloud& cloud, const Slice& slice) {
  for (const google::Endpoint& endpoint : slice.hosts()) {
    if (!endpoint.external_ip.empty()) continue;
    cloud.say(base::str(slice.name,
                        " has no external addresses: connecting to the internal ones, which works inside "
                        "its network. From outside: through a machine there (--ssh-option "
                        "ProxyJump=MACHINE), or IAP's tunnel with --ssh-option ProxyCommand"));
    return;
  }
}

}  // namespace

std::string reach_folder() {
  const auto state = base::environment("XDG_STATE_HOME");
  return base::join_path(state.value_or(base::expand_home("~/.local/state")), "sluice/tpu");
}

bool is_config_of(const std::string& ssh_config, const std::string& name) {
  return ssh_config.starts_with(reach_folder() + "/") && ssh_config.ends_with("." + name + "/ssh_config");
}

google::Outcome<ReachedSlice> reach_slice(Cloud& cloud, const std::string& name,
                                          const ReachOptions& options) {
  ReachedSlice reached;
  GOOGLE_TRY(reached.slice, find_slice(cloud, name, options.zone));
  const Slice& slice = reached.slice;
  GOOGLE_OK(check_up(slice));
  GOOGLE_TRY(const KeyPair key, find_or_make_key(options.key.empty() ? default_key_path() : options.key));
  const std::string user = options.user.empty() ? local_user() : options.user;
  GOOGLE_TRY(const bool key_is_new, publish_key(cloud, slice, options, user, key));
  const std::string folder =
      base::join_path(reach_folder(), base::str(cloud.project, '.', slice.zone, '.', slice.name));
  GOOGLE_OK(make_private_folder(folder));
  const std::string known_path = base::join_path(reach_folder(), "known_hosts");
  GOOGLE_OK(learn_host_keys(cloud, slice, known_path));
  warn_of_internal_addresses(cloud, slice);

  std::vector<SshSettings> all;
  for (const google::Node& node : slice.nodes) {
    SshSettings settings = settings_of(slice, node, reached.hosts.size());
    for (size_t i = 0; i < settings.workers.size(); ++i) {
      reached.hosts.push_back(host_name(slice.name, static_cast<int>(reached.hosts.size())));
      reached.addresses.push_back(settings.workers[i].internal);
    }
    settings.user = user;
    settings.key = key.path;
    settings.known_hosts = known_path;
    all.push_back(std::move(settings));
  }
  reached.ssh_config = base::join_path(folder, "ssh_config");
  GOOGLE_OK(base::write_file_atomically(reached.ssh_config, ssh_config(all)));
  if (key_is_new && !cloud.api->dry_run()) wait_for_key(cloud, reached);
  return reached;
}

void fill_job(pod::Job& job, const ReachedSlice& reached, const std::vector<int>& chosen, int per_host) {
  job.workers.clear();
  for (size_t host = 0; host < chosen.size(); ++host) {
    const auto worker = static_cast<size_t>(chosen[host]);
    for (int local = 0; local < per_host; ++local)
      job.workers.push_back(
          {reached.hosts[worker], reached.addresses[worker], static_cast<int>(host), local, per_host});
  }
  job.ssh.config = reached.ssh_config;
  job.ssh.user.clear();  // the configuration has it
  job.ssh.parallel = std::max(job.ssh.parallel, kConnectionsAtOnce);
}

}  // namespace sluice::provision
