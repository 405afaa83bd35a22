#include "sluice/pjrt/machine/holder.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/process.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"

namespace sluice::pjrt {
namespace fs = std::filesystem;
namespace {

std::string folder_of(int process) { return base::str("/proc/", process); }

// Returns when the machine started, in seconds since 1970.
double start_of_machine() {
  const auto text = base::read_file("/proc/stat");
  if (!text) return 0;
  const size_t line = text->find("\nbtime ");
  if (line == std::string::npos) return 0;
  const size_t begin = line + 7;
  return base::number_of<double>(std::string_view(*text).substr(begin, text->find('\n', begin) - begin))
      .value_or(0);
}

double start_of_process(int process) {
  const auto facts = base::look_at_process(process);
  const double begin = start_of_machine();
  if (!facts || begin <= 0) return 0;
  return begin + static_cast<double>(facts->began) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

Holder describe_process(int process) {
  Holder holder;
  holder.process = process;
  const std::string folder = folder_of(process);
  const auto command = base::read_file(folder + "/comm");
  if (command) holder.command = base::trim(*command);
  struct stat status {};
  if (::stat(folder.c_str(), &status) == 0) holder.user = name_of_user(status.st_uid);
  holder.since = start_of_process(process);
  return holder;
}

// Returns the files among `wanted` that the process has open.
std::vector<std::string> opened_by(int process, const std::vector<std::string>& wanted) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder_of(process) + "/fd", error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;
    const std::string target = fs::read_symlink(entry->path(), gone).string();
    if (gone || std::find(wanted.begin(), wanted.end(), target) == wanted.end()) continue;
    if (std::find(found.begin(), found.end(), target) == found.end()) found.push_back(target);
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Returns "10:31", or "2026-11-23 10:31" if that was not today.
std::string minute_text(double when) {
  const auto then = static_cast<std::time_t>(when), now = static_cast<std::time_t>(base::wall_seconds());
  std::tm day{}, today{};
  ::localtime_r(&then, &day);
  ::localtime_r(&now, &today);
  char text[32];
  const bool same = day.tm_year == today.tm_year && day.tm_yday == today.tm_yday;
  std::strftime(text, sizeof text, same ? "%H:%M" : "%Y-%m-%d %H:%M", &day);
  return text;
}

}  // namespace

std::string name_of_user(uid_t user) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> space(16384);
  if (::getpwuid_r(user, &entry, space.data(), space.size(), &found) == 0 && found != nullptr)
    return found->pw_name;
  return std::to_string(user);
}

std::string name_of_group(gid_t group_id) {
  group entry{};
  group* found = nullptr;
  std::vector<char> space(16384);
  if (::getgrgid_r(group_id, &entry, space.data(), space.size(), &found) == 0 && found != nullptr)
    return found->gr_name;
  return std::to_string(group_id);
}

std::string Holder::text() const {
  if (process == 0) return "a process outside this container";
  std::string text = base::str("process ", process);
  if (!command.empty()) text += base::str(" (", command, ")");
  if (!user.empty()) text += base::str(" of user ", user);
  if (since > 0) text += base::str(", since ", minute_text(since));
  return text;
}

std::vector<Holder> holders_of(const std::vector<std::string>& files) {
  std::vector<Holder> holders;
  const auto entries = base::list_directory("/proc");
  if (!entries || files.empty()) return holders;
  for (const std::string& entry : *entries) {
    const auto process = base::number_of<int>(entry);
    if (!process || *process == ::getpid()) continue;
    std::vector<std::string> opened = opened_by(*process, files);
    if (opened.empty()) continue;
    holders.push_back(describe_process(*process));
    holders.back().files = std::move(opened);
  }
  std::sort(holders.begin(), holders.end(),
            [](const Holder& a, const Holder& b) { return a.process < b.process; });
  return holders;
}

std::optional<Holder> holder_of_lock(const std::string& file) {
  // Closing a file gives up this process's own locks on it, and libtpu may already hold one.
  if (!opened_by(::getpid(), {file}).empty()) return std::nullopt;
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return std::nullopt;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool answered = ::fcntl(descriptor, F_GETLK, &lock) == 0;
  ::close(descriptor);
  if (!answered || lock.l_type == F_UNLCK) return std::nullopt;
  return lock.l_pid > 0 ? describe_process(lock.l_pid) : Holder();
}

}  // namespace sluice::pjrt
