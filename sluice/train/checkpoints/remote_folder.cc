#include "sluice/train/checkpoints/remote_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <set>

#include "sluice/base/clock.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/strings.h"
#include "sluice/base/thread.h"
#include "sluice/cloud/object_reader.h"
#include "sluice/cloud/store.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/session/files/remote_checkpoint.h"
#include "sluice/train/log/event_writer.h"

namespace sluice::train {
namespace {

constexpr std::chrono::seconds kEvery{30};
constexpr char kPrefix[] = "checkpoint-";
// The object in a checkpoint's folder that lists the objects which are to name the folder, a line each.
constexpr char kNames[] = "names";
constexpr char kLastFile[] = "state.json";  // of a checkpoint's files, the last to be uploaded

base::Status upload(const std::string& path, const std::string& url) {
  SLUICE_TRY(const cloud::ObjectName name, cloud::parse_object_url(url));
  SLUICE_TRY(const cloud::Store* store, cloud::store_of(name));
  SLUICE_TRY([[maybe_unused]] const auto facts, store->upload_file(path, name));
  return {};
}

// Returns the folders of checkpoints, the oldest first, with the names of their files.
base::Result<std::map<std::string, std::vector<std::string>>> checkpoints_in(const std::string& url) {
  SLUICE_TRY(const cloud::ObjectName root, cloud::parse_object_url(url + "/"));
  SLUICE_TRY(const cloud::Store* store, cloud::store_of(root));
  SLUICE_TRY(const auto objects, store->list(root.bucket, root.object + kPrefix));
  std::map<std::string, std::vector<std::string>> folders;
  for (const auto& object : objects) {
    const std::string rest = object.name.substr(root.object.size());
    if (const size_t slash = rest.find('/'); slash != std::string::npos)
      folders[rest.substr(0, slash)].push_back(rest.substr(slash + 1));
  }
  return folders;
}

// Returns the names of the objects in a folder that begin with `prefix`, without the objects in folders
// within it.
base::Result<std::vector<std::string>> names_in(const std::string& url, const std::string& prefix) {
  SLUICE_TRY(const cloud::ObjectName root, cloud::parse_object_url(url + "/"));
  SLUICE_TRY(const cloud::Store* store, cloud::store_of(root));
  SLUICE_TRY(const auto objects, store->list(root.bucket, root.object + prefix));
  std::vector<std::string> names;
  for (const auto& object : objects)
    if (const std::string name = object.name.substr(root.object.size()); name.find('/') == std::string::npos)
      names.push_back(name);
  return names;
}

bool is_top(const std::string& folder) {
  return base::starts_with(folder.substr(folder.rfind('/') + 1), TopPlace::kPrefix);
}

// Writes the objects that name a checkpoint's folder, in the order of `names`: best, top-STEP and last, a
// line each.
base::Status point_to(const std::string& url, const std::string& checkpoint, const std::string& names) {
  for (const std::string& name : base::split(names, '\n')) {
    // Whoever may write to the bucket wrote this text, too.
    if (name == "last" || name == "best" || (is_top(name) && name.find('/') == std::string::npos))
      SLUICE_OK(data::write_text(url + "/" + name, checkpoint + "\n"));
  }
  return {};
}

}  // namespace

bool RemoteFolder::is_remote(const std::string& url) { return cloud::is_object_url(url); }

base::Result<std::unique_ptr<RemoteFolder>> RemoteFolder::open(const std::string& url, bool leader) {
  SLUICE_TRY(const cloud::ObjectName name, cloud::parse_object_url(sessions::without_slash(url)));
  if (name.object.empty())
    return base::fail(Code::kInvalidArgument, "--logdir ", url, ": expected a folder in the bucket, such as ",
                      url, base::ends_with(url, "/") ? "" : "/", "run");
  SLUICE_TRY([[maybe_unused]] const cloud::Store* store, cloud::store_to_write(name));
  SLUICE_TRY(auto local, base::TemporaryDirectory::create("sluice-run"));
  std::unique_ptr<RemoteFolder> folder(new RemoteFolder(sessions::without_slash(url), std::move(local)));
  if (!leader) return folder;
  for (const char* file :
       {"metrics.csv", "metrics.jsonl", "mlflow.json", "mlflow.jsonl", "mlflow-refused.jsonl"}) {
    const auto status = folder->fetch(file);
    if (!status && status.error().code() != Code::kNotFound) return tl::unexpected<Error>(status.error());
  }
  folder->thread_ = std::thread([self = folder.get()] { self->work(); });
  return folder;
}

base::Status RemoteFolder::fetch_events() {
  SLUICE_TRY(const auto names, names_in(url_, kEventFile));
  const std::lock_guard lock(uploading_);
  for (const std::string& name : names) SLUICE_OK(fetch(name));
  return {};
}

base::Status RemoteFolder::fetch(const std::string& name) {
  const std::string path = base::join_path(local(), name);
  SLUICE_TRY(const cloud::ObjectName object_name, cloud::parse_object_url(url_ + "/" + name));
  SLUICE_TRY(const cloud::Store* store, cloud::store_of(object_name));
  SLUICE_TRY(const cloud::ObjectFacts facts, store->stat(object_name));  // before the bytes
  SLUICE_OK(cloud::download(url_ + "/" + name, path));
  SLUICE_TRY(cloud::GrowingObject * object, object_of(name));
  SLUICE_OK(object->adopt(path, facts));
  SLUICE_TRY(uploaded_[name], FileState::of(path));
  return {};
}

base::Result<cloud::GrowingObject*> RemoteFolder::object_of(const std::string& name) {
  const auto found = objects_.find(name);
  if (found != objects_.end()) return &found->second;
  SLUICE_TRY(const cloud::ObjectName object, cloud::parse_object_url(url_ + "/" + name));
  SLUICE_TRY(const cloud::Store* store, cloud::store_of(object));
  return &objects_.try_emplace(name, *store, object).first->second;
}

RemoteFolder::~RemoteFolder() {
  if (!thread_.joinable()) return;
  stop();
  // After an error, the curves up to it are still useful.
  if (const auto status = upload_changes(/*all=*/true); !status)
    base::warn("the log of this run is not complete in ", url_, ": ", status.error().what());
}

void RemoteFolder::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

base::Status RemoteFolder::finish() {
  if (!thread_.joinable()) return {};
  stop();
  return upload_changes(/*all=*/true);
}

void RemoteFolder::work() {
  base::name_thread("sluice-upload");
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kEvery, [this] { return stopping_; })) {
    lock.unlock();
    if (const auto status = upload_changes(/*all=*/false); !status)
      base::warn("the log could not be uploaded (it is tried again): ", status.error().what());
    lock.lock();
  }
}

base::Result<RemoteFolder::FileState> RemoteFolder::FileState::of(const std::string& path) {
  SLUICE_TRY(const std::uint64_t bytes, base::file_size(path));
  std::error_code error;  // without a time, the size decides
  return FileState{bytes, std::filesystem::last_write_time(path, error)};
}

// A file that stays open is the same one, and as long, while others append to it or put another in its place.
class OpenFile {
 public:
  static base::Result<OpenFile> open(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return base::fail_errno(errno, "open", path);
    return OpenFile(descriptor);
  }
  OpenFile(OpenFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OpenFile& operator=(OpenFile&&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  // A name by which this process can open it again.
  std::string path() const { return base::str("/proc/self/fd/", descriptor_); }

 private:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

struct RemoteFolder::Change {
  std::string name;
  OpenFile file;
  FileState state;
};

// Metrics and events only grow; a replaced file (confusion.json) has a new time.
base::Result<std::vector<RemoteFolder::Change>> RemoteFolder::open_changes() {
  SLUICE_TRY(const auto names, base::list_directory(local()));
  std::vector<Change> changes;
  const std::lock_guard lock(rows_);
  for (const std::string& name : names) {
    const std::string path = base::join_path(local(), name);
    if (name[0] == '.' || base::is_directory(path)) continue;
    auto file = OpenFile::open(path);
    if (!file && file.error().code() == Code::kNotFound) continue;  // removed since it was listed
    if (!file) return tl::unexpected<Error>(file.error());
    SLUICE_TRY(const FileState state, FileState::of(file->path()));
    if (const auto before = uploaded_.find(name); before != uploaded_.end() && before->second == state)
      continue;
    changes.push_back({name, std::move(*file), state});
  }
  return changes;
}

// A run that continues looks for the rows of its step in metrics.jsonl, and does not write them again. So the
// files are uploaded as they were at one moment: otherwise the curves could have a point twice, or lack one.
base::Status RemoteFolder::upload_changes(bool all) {
  const std::lock_guard lock(uploading_);
  SLUICE_TRY(const std::vector<Change> changes, open_changes());
  for (const Change& change : changes) {
    SLUICE_TRY(const cloud::GrowingObject* object, object_of(change.name));
    SLUICE_TRY(const bool due, object->is_due(change.file.path(), change.state.bytes));
    if (!due && !all) return {};
  }
  for (const Change& change : changes) {
    SLUICE_TRY(cloud::GrowingObject * object, object_of(change.name));
    SLUICE_OK(object->send(change.file.path(), change.state.bytes));
    uploaded_[change.name] = change.state;
  }
  return {};
}

base::Result<bool> RemoteFolder::has_checkpoint() const { return sessions::object_exists(url_ + "/last"); }

base::Result<std::string> RemoteFolder::find_start() const {
  SLUICE_TRY(const bool has_last, has_checkpoint());
  if (has_last) return url_;
  SLUICE_TRY(const auto folders, checkpoints_in(url_));
  if (folders.empty()) return std::string();
  const auto& [newest, files] = *folders.rbegin();
  std::string whole;
  for (const auto& [name, there] : folders)
    if (sessions::missing_files(there).empty()) whole = name;
  if (!whole.empty()) {
    base::warn(url_, "/last is missing, as after a run that was killed before it wrote it: continuing from ",
               whole, ", the newest whole checkpoint there");
    SLUICE_TRY(const std::string names, sessions::object_text(url_ + "/" + whole + "/" + kNames));
    SLUICE_OK(point_to(url_, whole, names));
    return url_ + "/" + whole;
  }
  const std::string lacks = base::str(newest, " lacks ", base::join(sessions::missing_files(files), " and "));
  SLUICE_TRY(const bool has_best, sessions::object_exists(url_ + "/best"));
  if (has_best)
    return base::fail(
        Code::kDataLoss, url_, "/last is missing, and no checkpoint there is whole: ", lacks,
        ": bring them back from a copy, or begin again without --resume, with another --logdir");
  base::warn(url_, "/last is missing, and no checkpoint there is whole: ", lacks,
             ", as after a run that was killed while it uploaded its first one: beginning afresh");
  return std::string();
}

sessions::CheckpointCopy RemoteFolder::copy() {
  return {[this] { return upload_.begin(); },
          [this](const std::string& checkpoint, const std::string& folder) {
            return upload_.send(checkpoint, folder);
          },
          [this](const std::string& checkpoint, const std::vector<std::string>& folders) {
            return publish(checkpoint, folders);
          }};
}

std::string CheckpointUpload::begin() {
  return base::str(kPrefix, static_cast<std::int64_t>(base::wall_seconds() * 1e3), "-", ::getpid());
}

base::Status CheckpointUpload::send(const std::string& checkpoint, const std::string& folder) {
  // Process 0 gave this name: it must not lead out of the run's folder.
  if (!base::starts_with(checkpoint, kPrefix) || checkpoint.find('/') != std::string::npos)
    return base::fail(Code::kDataLoss, "expected the name of a checkpoint's folder, found ",
                      base::printable_line(checkpoint));
  if (std::exchange(current_, checkpoint) != checkpoint) sent_.clear();
  SLUICE_TRY(std::vector<std::string> files, base::list_directory(folder));
  std::stable_partition(files.begin(), files.end(), [](const auto& file) { return file != kLastFile; });
  for (const std::string& file : files) {
    if (sent_.count(file) > 0) continue;
    SLUICE_OK(upload(base::join_path(folder, file), url_ + "/" + checkpoint + "/" + file));
    sent_.insert(file);
  }
  return {};
}

base::Status RemoteFolder::publish(const std::string& name, const std::vector<std::string>& folders) {
  // A run that continues from this checkpoint finds all rows of its step, even if `last` is never written.
  SLUICE_OK(upload_changes(/*all=*/true));
  std::string names;
  for (const std::string& folder : folders) names += folder.substr(folder.rfind('/') + 1) + "\n";
  SLUICE_OK(data::write_text(url_ + "/" + name + "/" + kNames, names));
  SLUICE_OK(upload_.send(name, folders.front()));
  SLUICE_OK(point_to(url_, name, names));
  for (const std::string& folder : folders) {
    std::error_code ignored;
    if (is_top(folder)) std::filesystem::remove_all(folder, ignored);
  }
  const auto removed = remove_old_checkpoints();
  if (!removed) base::warn("old checkpoints stay in ", url_, ": ", removed.error().what());
  return {};
}

base::Status RemoteFolder::remove_old_checkpoints() const {
  SLUICE_TRY(std::vector<std::string> pointers, names_in(url_, TopPlace::kPrefix));
  pointers.insert(pointers.end(), {"last", "best"});
  std::set<std::string> kept;
  for (const std::string& pointer : pointers) {
    SLUICE_TRY(const std::string name, sessions::object_text(url_ + "/" + pointer));
    kept.insert(name);
  }
  SLUICE_TRY(const cloud::ObjectName root, cloud::parse_object_url(url_ + "/"));
  SLUICE_TRY(const cloud::Store* store, cloud::store_of(root));
  SLUICE_TRY(const auto objects, store->list(root.bucket, root.object + kPrefix));
  for (const auto& object : objects) {
    const std::string rest = object.name.substr(root.object.size());
    if (kept.count(rest.substr(0, rest.find('/'))) > 0) continue;
    SLUICE_OK(store->remove(root.beside(object.name), object.generation));
  }
  return {};
}

class RemoteFolder::Top final : public TopPlace {
 public:
  explicit Top(const RemoteFolder& folder) : folder_(folder) {}
  base::Result<std::vector<std::string>> names() const override { return names_in(folder_.url_, kPrefix); }
  base::Result<std::optional<sessions::Progress>> progress(const std::string& name) const override {
    SLUICE_TRY(const std::string checkpoint, sessions::object_text(folder_.url_ + "/" + name));
    if (checkpoint.empty() || checkpoint.find('/') != std::string::npos)
      return std::optional<sessions::Progress>();
    SLUICE_TRY(const auto fetched, base::TemporaryDirectory::create("sluice-top"));
    const auto status = cloud::download(folder_.url_ + "/" + checkpoint + "/state.json",
                                        base::join_path(fetched.path(), "state.json"));
    if (!status && status.error().code() == Code::kNotFound) return std::optional<sessions::Progress>();
    if (!status) return tl::unexpected<Error>(status.error());
    auto found = sessions::read_progress(fetched.path());
    return found ? std::optional(std::move(*found)) : std::nullopt;
  }
  base::Status remove(const std::string& name) const override {
    SLUICE_TRY(const cloud::ObjectName pointer, cloud::parse_object_url(folder_.url_ + "/" + name));
    SLUICE_TRY(const cloud::Store* store, cloud::store_of(pointer));
    const auto facts = store->stat(pointer);
    if (!facts && facts.error().code() == Code::kNotFound) return {};
    if (!facts) return tl::unexpected<Error>(facts.error());
    SLUICE_OK(store->remove(pointer, facts->generation));
    return folder_.remove_old_checkpoints();
  }

 private:
  const RemoteFolder& folder_;
};

std::unique_ptr<TopPlace> RemoteFolder::top() { return std::make_unique<Top>(*this); }

}  // namespace sluice::train
