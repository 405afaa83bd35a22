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

int main(int argc, char** argv) {
  const std::vector<sluice::cli::Verb> verbs = sluice::cli::plain_verbs();
  const bool is_plain = argc > 1 && std::any_of(verbs.begin(), verbs.end(),
                                                [&](const auto& verb) { return verb.name == argv[1]; });
  if (is_plain) return sluice::cli::run_program(verbs, argc, argv);
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
