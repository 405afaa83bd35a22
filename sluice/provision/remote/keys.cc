#include "sluice/provision/remote/keys.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/process.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"

namespace sluice::provision {
namespace {

constexpr double kKeygenSeconds = 60;

// Returns "ssh-rsa AAAA…": type and blob make a key, the comment does not.
std::string type_and_blob(std::string_view public_key) {
  const auto words = base::split(base::trim(public_key), ' ');
  return words.size() < 2 ? std::string() : base::str(words[0], ' ', words[1]);
}

base::Result<std::string> run_keygen(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "ssh-keygen");
  const auto done = base::run_process(arguments, {}, kKeygenSeconds);
  if (!done)
    return base::fail(Code::kNotFound, "no key can be made: ", done.error().what(),
                      " (ssh-keygen is in Debian's package openssh-client)");
  if (done->status.code() != 0)
    return base::fail(Code::kInternal, "ssh-keygen ended with ", done->status.text(), ": ",
                      done->last_words());
  return done->output;
}

base::Status make_key(const std::string& path) {
  const std::string folder = base::parent_path(path);
  if (!base::path_exists(folder)) {
    SLUICE_OK(base::make_directories(folder));
    ::chmod(folder.c_str(), 0700);
  }
  // Creates the key under another name first: several programs may find at once that there is none, and all
  // must use the same.
  const std::string made = base::str(path, '.', ::getpid());
  SLUICE_TRY(const std::string said, run_keygen({"-q", "-t", "rsa", "-b", "3072", "-N", "", "-f", made}));
  const bool is_first = ::link(made.c_str(), path.c_str()) == 0;
  const int number = errno;
  ::unlink(made.c_str());
  ::unlink((made + ".pub").c_str());  // re-created from the key that all use
  if (is_first || number == EEXIST) return {};
  return base::fail_errno(number, "write", path);
}

}  // namespace

std::string default_key_path() { return base::expand_home("~/.ssh/google_compute_engine"); }

base::Result<KeyPair> find_or_make_key(const std::string& path) {
  const std::string public_path = path + ".pub";
  if (!base::path_exists(path)) SLUICE_OK(make_key(path));
  if (!base::path_exists(public_path)) {
    SLUICE_TRY(const std::string text, run_keygen({"-y", "-P", "", "-f", path}));
    SLUICE_OK(base::write_file_atomically(public_path, base::str(base::trim(text), '\n')));
  }
  SLUICE_TRY(const std::string text, base::read_file(public_path));
  const std::string line(base::trim(text));
  if (type_and_blob(line).empty() || line.find('\n') != std::string::npos)
    return base::fail(Code::kDataLoss, public_path,
                      " is not a public key (expected one line, TYPE KEY COMMENT); remove it, and it is made "
                      "again of ",
                      path);
  return KeyPair{path, line};
}

bool has_key(std::string_view entry, std::string_view user, std::string_view public_key) {
  const std::string wanted = type_and_blob(public_key);
  for (const std::string& line : base::split(entry, '\n')) {
    const std::string_view text = base::trim(line);
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos || text.substr(0, colon) != user) continue;
    if (text.find("\"expireOn\"") != std::string_view::npos) continue;
    if (type_and_blob(text.substr(colon + 1)) == wanted) return true;
  }
  return false;
}

std::string with_key(std::string_view entry, std::string_view user, std::string_view public_key) {
  std::string text(entry);
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  return base::str(text, user, ':', base::trim(public_key));
}

std::string local_user() {
  std::string name = base::environment("USER").value_or("");
  if (name.empty()) {
    const passwd* account = ::getpwuid(::getuid());
    name = account != nullptr ? account->pw_name : "root";
  }
  return name.substr(0, name.find('@'));
}

}  // namespace sluice::provision
