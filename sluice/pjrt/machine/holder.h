// Processes that hold files: who has them open, and who has a lock on one.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace sluice::pjrt {

struct Holder {
  int process = 0;      // 0: in another container, where its number is not known here
  std::string command;  // "python3"
  std::string user;
  double since = 0;                // when it began, in seconds since 1970; 0: not known
  std::vector<std::string> files;  // that it has open; none: it holds a lock
  // "process 1234 (python3) of user ada, since 10:31": the time is local, with the date when it was not
  // today.
  std::string text() const;
};

// Who has one of these files open, by their numbers, this process left out. Processes whose files this user
// may not see are left out too.
std::vector<Holder> holders_of(const std::vector<std::string>& files);

// Who holds a lock on the whole file or a part of it; its being there says nothing. Nobody is found where
// this process has the file open.
std::optional<Holder> holder_of_lock(const std::string& file);

// The names of a user and of a group; their numbers where they have none.
std::string name_of_user(uid_t user);
std::string name_of_group(gid_t group);

}  // namespace sluice::pjrt
