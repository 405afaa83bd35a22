#include "sluice/cli/cli.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

#include "sluice/cli/flags/old_flags.h"
#include "sluice/cli/program.h"
#include "sluice/cli/verbs.h"

namespace sluice::cli {
namespace {

// Removes and returns the words after -- for a verb that takes a command, so that CLI11 does not parse them.
std::vector<std::string> take_command(int& argc, char** argv) {
  if (argc < 2 || (std::string_view(argv[1]) != "compile" && std::string_view(argv[1]) != "estimate"))
    return {};
  char** const end = argv + argc;
  char** const dashes =
      std::find_if(argv, end, [](const char* word) { return std::string_view(word) == "--"; });
  argc = static_cast<int>(dashes - argv);
  return dashes == end ? std::vector<std::string>() : std::vector<std::string>(dashes + 1, end);
}

}  // namespace

int run_command_line(int argc, char** argv) {
  if (argc > 2 && std::string_view(argv[1]) == "train") {
    const std::string answer = answer_to_old_flags({argv + 2, argv + argc});
    if (!answer.empty()) {
      std::fprintf(stderr, "sluice: %s\n", answer.c_str());
      return 2;
    }
  }
  std::vector<std::string> command = take_command(argc, argv);  // changes argc
  return run_program(all_verbs(std::move(command)), argc, argv);
}

}  // namespace sluice::cli
