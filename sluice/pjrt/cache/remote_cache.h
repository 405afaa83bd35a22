// A place for compiled programs beyond this machine, such as a bucket that all hosts of a slice can read.
// This room reaches no network: another one says how entries are moved. They are kept in a folder of this
// machine as well, and read from there.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "sluice/base/result.h"
#include "sluice/pjrt/cache/patience.h"

namespace sluice::pjrt {

class RemoteLock;

// How entries are moved. Called by the threads that compile, several at a time.
struct RemoteCache {
  // Writes the object to a file, which appears complete. kNotFound if there is no such object.
  std::function<base::Status(const std::string& url, const std::string& path)> fetch = {};
  // Stores the file as an object. Without `replace`, an object that exists stays as it is.
  std::function<base::Status(const std::string& path, const std::string& url, bool replace)> store = {};

  // The next three are for locks (remote_lock.h), which need all of them.
  // Writes a small object if it has this generation ("0": if it is missing) and returns the new generation;
  // kFailedPrecondition if it has another one.
  std::function<base::Result<std::string>(const std::string& url, const std::string& text,
                                          const std::string& generation)>
      write = {};
  // Returns the object's generation, which changes with each write(). kNotFound if there is no such object.
  std::function<base::Result<std::string>(const std::string& url)> generation = {};
  std::function<base::Status(const std::string& url, const std::string& generation)> remove = {};
};

// Must be called before the first client is opened.
void set_remote_cache(RemoteCache how);

// Whether $SLUICE_CACHE_DIR is such a place: it has a scheme, as gs://bucket/programs has.
bool is_remote_cache(const std::string& place);
// Returns the folder that stands for this place, a folder of its own in `above`; from then on the next four
// functions know the folder.
std::string local_folder_of(const std::string& place, const std::string& above);
bool stands_for_place(const std::string& folder);
// Brings the entry to `folder`, which must exist. False if it is not there, if the folder stands for no
// place, or, with a warning, if it could not be read; then no other entry is tried.
bool fetch_entry(const std::string& folder, const std::string& name);
// Stores the folder's entry at the place that the folder stands for, if there is one. Warns if this fails;
// then no other entry is tried.
void store_entry(const std::string& folder, const std::string& name, bool replace);
// Asks for the entry's lock at that place (RemoteLock::take). Nothing if the folder stands for no place, or
// if that place cannot be read, written or locked.
std::optional<LockState> lock_entry(const std::string& folder, const std::string& name,
                                    const WaitTimes& times, Patience& patience,
                                    std::unique_ptr<RemoteLock>* lock);

}  // namespace sluice::pjrt
