// The program: verbs that need no LibTorch it does itself, for loading LibTorch takes 0.4 s and 126 MB. For
// all else it becomes sluice-torch, which lies beside it.
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

// Whether the command line is for a verb among these. The help of a noun with more verbs is not.
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
  // Built without LibTorch: its own help and version, and what it says of an unknown verb.
  std::fprintf(stderr, "sluice: %s is not there, so only verbs that need no LibTorch are\n", other.c_str());
  return sluice::cli::run_program(verbs, argc, argv);
}
