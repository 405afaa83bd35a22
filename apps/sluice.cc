// The program `sluice`. It runs the verbs that need no LibTorch itself, because loading LibTorch takes 0.4 s
// and 126 MB. For all other verbs it becomes sluice-torch, which is next to it.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include "sluice/cli/program.h"

namespace {

using sluice::cli::Verb;

const Verb* find(const std::vector<Verb>& verbs, const char* name) {
  const auto found =
      std::find_if(verbs.begin(), verbs.end(), [name](const Verb& verb) { return verb.name == name; });
  return found == verbs.end() ? nullptr : &*found;
}

// Whether one of these verbs runs the command line. For the help of a noun with more verbs, none does.
bool is_plain(const std::vector<Verb>& verbs, int argc, char** argv) {
  const Verb* const verb = argc > 1 ? find(verbs, argv[1]) : nullptr;
  if (verb == nullptr || !verb->more_with_torch) return verb != nullptr;
  return argc > 2 && find(verb->verbs, argv[2]) != nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<Verb> verbs = sluice::cli::plain_verbs();
  if (is_plain(verbs, argc, argv)) return sluice::cli::run_program(verbs, argc, argv);
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string other = (own.parent_path() / "sluice-torch").string();
  execv(other.c_str(), argv);
  if (errno != ENOENT) {
    std::fprintf(stderr, "sluice: cannot start %s: %s\n", other.c_str(), std::strerror(errno));
    return 1;
  }
  // Built without LibTorch: this program prints its own help, its version, and the error for an unknown verb.
  std::fprintf(stderr, "sluice: %s is not there, so only verbs that need no LibTorch are\n", other.c_str());
  return sluice::cli::run_program(verbs, argc, argv);
}
