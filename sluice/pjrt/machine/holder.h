// Finds processes that have files open, or a lock on one.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace sluice::pjrt {

struct Holder {
  int process = 0;      // 0: in another container, where its number is unknown here
  std::string command;  // "python3"
  std::string user;
  double since = 0;                // when it began, in seconds since 1970; 0: unknown
  std::vector<std::string> files;  // the ones that it has open; empty: it holds a lock
  // Returns "process 1234 (python3) of user ada, since 10:31" in local time, with the date if it was not
  // today.
  std::string text() const;
};

// Returns the processes that have one of these files open, by their numbers, without this process and those
// whose files this user may not see.
std::vector<Holder> holders_of(const std::vector<std::string>& files);

// Returns the process that holds a lock on the file or a part of it; the existence of the file means nothing.
// Returns nullopt if this process has the file open.
std::optional<Holder> holder_of_lock(const std::string& file);

// Return the name of a user or group, or its number if it has no name.
std::string name_of_user(uid_t user);
std::string name_of_group(gid_t group);

}  // namespace sluice::pjrt
