#include "sluice/pjrt/cache/remote_cache.h"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/base/log.h"
#include "sluice/pjrt/cache/remote_lock.h"

namespace sluice::pjrt {
namespace {

struct Places {
  std::mutex mutex;
  RemoteCache how;
  std::map<std::string, std::string> of_folder;  // URLs without a slash at their end
  // After an error: another attempt would wait for as long as the first one did.
  std::atomic<bool> unreadable{false}, unwritable{false}, unlockable{false};
};
Places& places() {
  static auto* const all = new Places;  // threads that compile may outlive static objects
  return *all;
}

// Returns the entry's URL and how it is moved; nullopt if the folder stands for no place.
std::optional<std::pair<std::string, RemoteCache>> find_place(const std::string& folder,
                                                              const std::string& name) {
  const std::lock_guard lock(places().mutex);
  const auto found = places().of_folder.find(folder);
  if (found == places().of_folder.end()) return std::nullopt;
  return std::pair(found->second + "/" + name, places().how);
}

base::Status not_reachable() {
  return base::fail(Code::kFailedPrecondition,
                    "SLUICE_CACHE_DIR names no folder, and only a program that starts a session "
                    "(sluice::start) reaches other places");
}

}  // namespace

void set_remote_cache(RemoteCache how) {
  const std::lock_guard lock(places().mutex);
  places().how = std::move(how);
  places().unreadable = places().unwritable = places().unlockable = false;
}

bool is_remote_cache(const std::string& place) { return place.find("://") != std::string::npos; }

std::string local_folder_of(const std::string& place, const std::string& above) {
  std::string url = place;
  while (!url.empty() && url.back() == '/') url.pop_back();
  const std::string folder =
      base::join_path(above, "of-" + base::hexadecimal(base::sha256(url)).substr(0, 16));
  const std::lock_guard lock(places().mutex);
  places().of_folder[folder] = url;
  return folder;
}

bool stands_for_place(const std::string& folder) {
  const std::lock_guard lock(places().mutex);
  return places().of_folder.count(folder) > 0;
}

bool fetch_entry(const std::string& folder, const std::string& name) {
  const auto place = find_place(folder, name);
  if (!place || places().unreadable) return false;
  const auto& [url, how] = *place;
  const base::Status status = how.fetch ? how.fetch(url, base::join_path(folder, name)) : not_reachable();
  if (!status && status.error().code() != Code::kNotFound && !places().unreadable.exchange(true))
    base::warn("a compiled program could not be read from ", url,
               ", so this process compiles its programs itself: ", status.error().what());
  return status.has_value();
}

void store_entry(const std::string& folder, const std::string& name, bool replace) {
  const auto place = find_place(folder, name);
  if (!place || places().unwritable) return;
  const auto& [url, how] = *place;
  const base::Status status =
      how.store ? how.store(base::join_path(folder, name), url, replace) : not_reachable();
  if (!status && !places().unwritable.exchange(true))
    base::warn("a compiled program could not be stored as ", url,
               ", so the programs of this process stay on this machine: ", status.error().what());
}

std::optional<LockState> lock_entry(const std::string& folder, const std::string& name,
                                    const WaitTimes& times, Patience& patience,
                                    std::unique_ptr<RemoteLock>* lock) {
  const auto place = find_place(folder, name);
  if (!place || places().unreadable || places().unwritable || places().unlockable) return std::nullopt;
  const auto& [url, how] = *place;
  if (!how.write || !how.generation || !how.remove) return std::nullopt;
  base::Status error;
  const LockState state = RemoteLock::take(how, url, times, patience, lock, &error);
  if (state != LockState::kNone) return state;
  // store() reports what keeps this process from writing there.
  places().unlockable = true;
  base::debug("compile cache: no lock for ", url, ": ", error.error().what());
  return std::nullopt;
}

}  // namespace sluice::pjrt
