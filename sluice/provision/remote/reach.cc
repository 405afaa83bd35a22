#include "sluice/provision/remote/reach.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/files/private_file.h"
#include "sluice/base/files/user_folders.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/google/operation.h"
#include "sluice/provision/remote/keys.h"
#include "sluice/provision/remote/members.h"
#include "sluice/provision/remote/shell.h"
#include "sluice/provision/remote/ssh_config.h"

namespace sluice::provision {
namespace {
using google::Kind;

constexpr double kHostKeySeconds = 60;  // for a new machine's agent to publish its host keys
constexpr double kNewKeySeconds = 90;   // for its agent to install a key
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

// Leaves out the other slices of several, which may be lost.
google::Done choose_slices(Slice& slice, const std::vector<int>& numbers) {
  if (numbers.empty()) return {};
  std::vector<google::Node> chosen;
  for (const int number : numbers) {
    const auto node = std::find_if(slice.nodes.begin(), slice.nodes.end(),
                                   [&](const auto& one) { return slice.number_of(one) == number; });
    if (number >= slice.slices || node == slice.nodes.end())
      return google::failed(Kind::kInvalid, Code::kInvalidArgument, "--use-slices ", base::join(numbers, ","),
                            ": ", slice.name, " in ", slice.zone, " has no slice ", number, ": it has ",
                            slice.slices == 1 ? "one slice, 0" : base::str("slices 0 to ", slice.slices - 1),
                            number < slice.slices ? ", but that one is not listed now" : "");
    if (node->state != "READY")
      return google::failed(Kind::kWrongState, Code::kFailedPrecondition, node->id, " in ", slice.zone,
                            " is ", node->state, ", expected READY: leave it out of --use-slices");
    chosen.push_back(*node);
  }
  slice.nodes = std::move(chosen);
  slice.state = "READY";
  return {};
}

google::Done check_up(const Slice& slice) {
  if (slice.ready() && !slice.hosts().empty()) return {};
  const bool dead = is_dead(slice.state);
  std::string others;
  for (const google::Node& node : slice.nodes)
    if (slice.slices > 1 && node.state != "READY") others += base::str(others.empty() ? "" : ", ", node.id);
  return google::failed(
      Kind::kWrongState, Code::kFailedPrecondition, slice.name, " in ", slice.zone, " is ", slice.state,
      others.empty() ? "" : base::str(" (", others, ")"), ", expected READY: ",
      dead ? base::str("it never will be again; delete it and make another, or let `sluice keep` "
                       "do so",
                       others.empty() ? "" : "; --use-slices takes only the other slices")
           : base::str("`sluice tpu wait ", slice.name, "` waits for it"));
}

// Returns the project's metadata; nothing if the caller may not read them or has no Compute Engine, as the
// node's own are enough.
google::Texts project_metadata(Cloud& cloud) {
  google::Texts metadata;
  const auto project = cloud.compute().project_json();
  if (!project) return metadata;
  for (const auto& item : google::elements(*project, "commonInstanceMetadata.items"))
    metadata[google::text(item, "key")] = google::text(item, "value");
  return metadata;
}

google::Done refuse_os_login(const Slice& slice, const ReachOptions& options, const KeyPair& key) {
  if (!options.user.empty()) return {};  // a user who names the account is responsible for its keys
  return google::failed(
      Kind::kForbidden, Code::kFailedPrecondition, slice.name,
      " demands OS Login (enable-oslogin=TRUE in its metadata or the project's): keys in metadata "
      "count for nothing there. Give your account the key with `gcloud compute os-login ssh-keys "
      "add --key-file=",
      key.path,
      ".pub`, and name the account: `--ssh-user` with what `gcloud "
      "compute os-login describe-profile` says");
}

// A member's metadata with a new key, while they are being written.
struct KeyOnItsWay {
  Member member;
  google::Outcome<google::Operation> operation;
};

KeyOnItsWay begin_key(Cloud& cloud, const Member& member, const std::string& user, const KeyPair& key) {
  google::Texts metadata = member.metadata;
  metadata["ssh-keys"] = with_key(entry_of(metadata, "ssh-keys"), user, key.public_key);
  cloud.say(base::str("adding ", user, "'s key to the metadata of ", member.name));
  return {member, write_metadata(cloud, member, metadata)};
}

google::Done finish_key(Cloud& cloud, KeyOnItsWay begun, const std::string& user, const KeyPair& key) {
  constexpr int kTries = 3;
  for (int tries = 1;; ++tries) {
    google::Done done;
    if (begun.operation) {
      done = google::wait(*cloud.api, *begun.operation, google::default_wait(*cloud.api));
    } else {
      done = tl::unexpected<google::Failure>(begun.operation.error());
    }
    if (done || cloud.api->dry_run()) return done;
    // The operation does not decide, the metadata do. Somebody else may have written them meanwhile.
    GOOGLE_TRY(const Member now, look_again(cloud, begun.member));
    if (has_key(entry_of(now.metadata, "ssh-keys"), user, key.public_key)) return {};
    if (done.error().kind != Kind::kWrongState || tries == kTries) return done;
    begun = begin_key(cloud, now, user, key);
  }
}

// Publishes the key where every worker looks for it; returns whether that was needed.
google::Outcome<bool> publish_key(Cloud& cloud, const std::vector<Member>& members, const Slice& slice,
                                  const ReachOptions& options, const std::string& user, const KeyPair& key) {
  std::optional<google::Texts> project;  // read when a member needs it
  std::vector<KeyOnItsWay> begun;
  for (const Member& member : members) {
    if (is_true(member.metadata, "enable-oslogin")) {
      GOOGLE_OK(refuse_os_login(slice, options, key));
      continue;
    }
    if (has_key(entry_of(member.metadata, "ssh-keys"), user, key.public_key)) continue;
    if (!project) project = project_metadata(cloud);
    if (is_true(*project, "enable-oslogin") && member.metadata.count("enable-oslogin") == 0) {
      GOOGLE_OK(refuse_os_login(slice, options, key));
      continue;
    }
    if (!is_true(member.metadata, "block-project-ssh-keys") &&
        has_key(entry_of(*project, "ssh-keys"), user, key.public_key))
      continue;
    begun.push_back(begin_key(cloud, member, user, key));
  }
  for (const KeyOnItsWay& one : begun) GOOGLE_OK(finish_key(cloud, one, user, key));
  return !begun.empty();
}

// Waits until the workers' agents have installed a new key, which takes seconds. Other errors are reported
// when the key is used.
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

google::Done learn_keys_of(Cloud& cloud, const Member& member, std::string& known) {
  std::vector<std::string> missing;
  for (size_t i = 0; i < member.endpoints.size(); ++i)
    if (!knows_host(known, member.alias(static_cast<int>(i)))) missing.push_back(std::to_string(i));
  const double until = cloud.api->clock().now() + kHostKeySeconds;
  while (!missing.empty()) {
    GOOGLE_TRY(const auto keys, published_keys(cloud, member, missing));
    std::vector<std::string> still;
    for (size_t i = 0; i < missing.size(); ++i) {
      if (keys[i].empty()) still.push_back(missing[i]);
      known = with_host(known, member.alias(std::stoi(missing[i])), keys[i]);
    }
    missing = std::move(still);
    if (missing.empty()) break;
    if (cloud.api->clock().now() >= until)
      return google::failed(
          Kind::kOther, Code::kUnavailable,
          member.is_machine ? "" : base::str("the workers ", base::join(missing, ", "), " of "), member.name,
          member.is_machine ? " has" : " have",
          " published no host keys (guest attributes hostkeys/), so that nobody "
          "could tell them from an impostor. Metadata enable-guest-attributes=TRUE lets them");
    cloud.api->clock().sleep(2, cloud.cancelled);
  }
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

google::Done learn_host_keys(Cloud& cloud, const std::vector<Member>& members,
                             const std::string& known_path) {
  const FileLock lock(known_path + ".lock");
  const std::string before = base::read_file(known_path).value_or("");
  std::string known = before;
  google::Done learnt;
  for (const Member& member : members) {
    learnt = learn_keys_of(cloud, member, known);
    if (!learnt) break;
  }
  if (known != before) {
    if (const auto written = base::write_file_atomically(known_path, known); !written)
      return tl::unexpected<google::Failure>(written.error());
  }
  return learnt;
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

// Finds the slices of these names, which run one program.
google::Outcome<std::vector<Slice>> find_slices(Cloud& cloud, const std::vector<std::string>& names,
                                                const ReachOptions& options) {
  std::vector<Slice> slices;
  if (names.size() > 1 && !options.slices.empty())
    return google::failed(
        Kind::kInvalid, Code::kInvalidArgument,
        "--use-slices chooses among the slices of one name: leave it out, or leave out names");
  for (const std::string& name : names) {
    if (std::count(names.begin(), names.end(), name) > 1)
      return google::failed(Kind::kInvalid, Code::kInvalidArgument, "the TPU ", name,
                            " comes twice: name each slice once");
    GOOGLE_TRY(Slice slice, find_slice(cloud, name, options.zone));
    GOOGLE_OK(choose_slices(slice, options.slices));
    GOOGLE_OK(check_up(slice));
    if (!slices.empty() && slice.type != slices.front().type)
      return google::failed(Kind::kInvalid, Code::kInvalidArgument,
                            "the slices of a run must be of one type: ", slices.front().name, " is a ",
                            slices.front().type, ", and ", name, " is a ", slice.type);
    if (!slices.empty() && slice.zone != slices.front().zone)
      return google::failed(Kind::kInvalid, Code::kInvalidArgument,
                            "the slices of a run exchange data within one zone: ", slices.front().name,
                            " is in ", slices.front().zone, ", and ", name, " is in ", slice.zone);
    slices.push_back(std::move(slice));
  }
  return slices;
}

// Adds the workers of a slice, whose nodes may be several slices.
void add_workers(ReachedSlice& reached, const std::vector<Member>& members, SshSettings& settings) {
  const bool is_group = !members.empty() && members.front().is_machine;
  for (const Member& member : members) {
    for (size_t i = 0; i < member.endpoints.size(); ++i) {
      const google::Endpoint& endpoint = member.endpoints[i];
      reached.hosts.push_back(host_name(settings.slice, static_cast<int>(settings.workers.size())));
      reached.addresses.push_back(endpoint.internal_ip);
      reached.slice_of.push_back(reached.slices);
      settings.workers.push_back({endpoint.external_ip.empty() ? endpoint.internal_ip : endpoint.external_ip,
                                  member.alias(static_cast<int>(i))});
    }
    if (!is_group) ++reached.slices;
  }
  if (is_group) ++reached.slices;
}

// Describes several slices of one type as one.
Slice one_of(std::vector<Slice> slices) {
  Slice all = std::move(slices.front());
  for (auto slice = slices.begin() + 1; slice != slices.end(); ++slice) {
    all.name += "," + slice->name;
    all.slices += slice->slices;
    all.nodes.insert(all.nodes.end(), slice->nodes.begin(), slice->nodes.end());
    for (const google::Json& machine : slice->instances) all.instances.push_back(machine);
  }
  return all;
}

}  // namespace

std::string reach_folder() { return base::join_path(base::user_state_folder(), "tpu"); }

bool is_config_of(const std::string& ssh_config, const std::string& name) {
  constexpr std::string_view kFile = "/ssh_config";
  if (!ssh_config.starts_with(reach_folder() + "/") || !ssh_config.ends_with(kFile)) return false;
  const std::string folder = ssh_config.substr(0, ssh_config.size() - kFile.size());
  const auto names = base::split(folder.substr(folder.rfind('.') + 1), '+');
  return base::join(names, ",") == name || std::find(names.begin(), names.end(), name) != names.end();
}

google::Outcome<ReachedSlice> reach_slice(Cloud& cloud, const std::string& name,
                                          const ReachOptions& options) {
  return reach_slices(cloud, {name}, options);
}

google::Outcome<ReachedSlice> reach_slices(Cloud& cloud, const std::vector<std::string>& names,
                                           const ReachOptions& options) {
  GOOGLE_TRY(std::vector<Slice> slices, find_slices(cloud, names, options));
  GOOGLE_TRY(const KeyPair key, find_or_make_key(options.key.empty() ? default_key_path() : options.key));
  const std::string user = options.user.empty() ? local_user() : options.user;
  const std::string known_path = base::join_path(reach_folder(), "known_hosts");
  const std::string folder = base::join_path(
      reach_folder(), base::str(cloud.project, '.', slices.front().zone, '.', base::join(names, "+")));
  GOOGLE_OK(base::make_private_folder(folder));
  ReachedSlice reached;
  reached.slices = 0;
  std::vector<SshSettings> settings;
  bool key_is_new = false;
  for (const Slice& slice : slices) {
    const std::vector<Member> members = members_of(slice);
    GOOGLE_TRY(const bool is_new, publish_key(cloud, members, slice, options, user, key));
    key_is_new = key_is_new || is_new;
    GOOGLE_OK(learn_host_keys(cloud, members, known_path));
    warn_of_internal_addresses(cloud, slice);
    settings.push_back({slice.name, {}, user, key.path, known_path});
    add_workers(reached, members, settings.back());
  }
  reached.slice = one_of(std::move(slices));
  reached.ssh_config = base::join_path(folder, "ssh_config");
  GOOGLE_OK(base::write_file_atomically(reached.ssh_config, ssh_config(settings)));
  if (key_is_new && !cloud.api->dry_run()) wait_for_key(cloud, reached);
  return reached;
}

void fill_job(pod::Job& job, const ReachedSlice& reached, const std::vector<int>& chosen, int per_host) {
  job.workers.clear();
  job.slices = 0;
  for (size_t host = 0; host < chosen.size(); ++host) {
    const auto worker = static_cast<size_t>(chosen[host]);
    const bool is_next =
        host == 0 || reached.slice_of[worker] != reached.slice_of[static_cast<size_t>(chosen[host - 1])];
    job.slices += is_next ? 1 : 0;
    for (int local = 0; local < per_host; ++local)
      job.workers.push_back({reached.hosts[worker], reached.addresses[worker], static_cast<int>(host), local,
                             per_host, job.slices - 1});
  }
  if (job.slices > 1) job.slice_type = reached.slice.type;
  job.ssh.config = reached.ssh_config;
  job.ssh.user.clear();  // the configuration has it
  job.ssh.parallel = std::max(job.ssh.parallel, kConnectionsAtOnce);
}

}  // namespace sluice::provision
