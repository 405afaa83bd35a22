#include "sluice/cli/cli.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string_view>

#include "sluice/base/build_id.h"
#include "sluice/base/error.h"
#include "sluice/base/strings.h"
#include "sluice/cli/data_verbs.h"
#include "sluice/cli/old_flags.h"
#include "sluice/cli/run_verb.h"
#include "sluice/cli/verbs.h"

namespace sluice::cli {
namespace {

int fail(int status, const std::string& message) {
  std::fprintf(stderr, "sluice: %s\n", message.c_str());
  return status;
}

// The verb that the command line chose, at any depth.
const CLI::App& deepest(const CLI::App& app) {
  auto chosen = app.get_subcommands();
  return chosen.empty() ? app : deepest(*chosen.front());
}

// What follows an argument that nobody takes.
std::string unknown(const CLI::App& app, const std::string& argument) {
  if (base::starts_with(argument, "-")) {
    const std::string near = nearest_flag(app, argument.substr(0, argument.find('=')));
    return base::str("unknown flag ", argument,
                     near.empty() ? std::string() : base::str("; did you mean ", near, "?"), " See ",
                     app.get_name().empty() ? std::string("sluice") : base::str("sluice ", app.get_name()),
                     " --help.");
  }
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App* v) { return !v->get_group().empty(); }))
    verbs.push_back(verb->get_name());
  if (verbs.empty()) return base::str("unexpected argument \"", argument, "\"");
  const std::string near = base::nearest(argument, verbs);
  return base::str("unknown verb \"", argument, "\"",
                   near.empty() ? std::string() : base::str("; did you mean \"", near, "\"?"),
                   " Known: ", base::join(verbs, ", "));
}

int parse_and_run(CLI::App& program, Action& action, const int& data_status, int argc, char** argv) {
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return program.exit(help);
  } catch (const CLI::ExtrasError& error) {
    const auto extras = program.remaining(/*recurse=*/true);
    // A flag is at the root of it: what follows one that nobody takes has lost its place.
    const auto flag = std::find_if(extras.begin(), extras.end(), [](const std::string& extra) {
      return base::starts_with(extra, "-") && extra != "--";
    });
    const auto first = flag == extras.end() ? extras.begin() : flag;
    return fail(2, extras.empty() ? std::string(error.what()) : unknown(deepest(program), *first));
  } catch (const CLI::ParseError& error) {
    return fail(2, error.what());
  }
  const CLI::App& verb = deepest(program);
  if (program.got_subcommand("data")) return data_status;  // its verbs run while they are parsed
  if (!action) {
    std::fprintf(stderr, "%s", verb.help().c_str());
    return 2;
  }
  return action();
}

}  // namespace

std::string nearest_flag(const CLI::App& app, const std::string& flag) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  return base::nearest(flag, flags);
}

// What stands behind -- on the line of a verb that takes a command. CLI11 would find verbs and flags in it.
std::vector<std::string> take_command(int& argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "estimate") return {};
  char** const end = argv + argc;
  char** const dashes =
      std::find_if(argv, end, [](const char* word) { return std::string_view(word) == "--"; });
  argc = static_cast<int>(dashes - argv);
  return dashes == end ? std::vector<std::string>() : std::vector<std::string>(dashes + 1, end);
}

int run(int argc, char** argv) {
  CLI::App program("Trains LibTorch models on the xla device.", "sluice");
  program.set_version_flag("--version", base::str("sluice ", SLUICE_VERSION, " build ", base::build_id()));
  program.option_defaults()->always_capture_default();
  program.get_formatter()->column_width(36);
  if (argc > 2 && std::string_view(argv[1]) == "train") {
    const std::string answer = answer_to_old_flags({argv + 2, argv + argc});
    if (!answer.empty()) return fail(2, answer);
  }
  Action action;
  add_train_verb(program, action);
  add_export_verb(program, action);
  add_bench_verb(program, action);
  add_compile_verb(program, action);
  add_estimate_verb(program, action, take_command(argc, argv));
  add_compile_worker(program, action);
  add_devices_verb(program, action);
  add_run_verb(program, action);
  int data_status = 0;
  add_data_verbs(program, data_status);
  try {
    return parse_and_run(program, action, data_status, argc, argv);
  } catch (const Usage& error) {
    return fail(2, error.what());
  } catch (const Error& error) {
    return fail(1, error.what());
  } catch (const std::exception& error) {
    // LibTorch's messages carry a stack trace from their second line on.
    const std::string text = error.what();
    return fail(1, text.substr(0, text.find("\nException raised from")));
  }
}

}  // namespace sluice::cli
