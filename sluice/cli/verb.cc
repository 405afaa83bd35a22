#include "sluice/cli/verb.h"

#include <algorithm>
#include <cstdio>
#include <exception>

#include "sluice/base/error.h"
#include "sluice/base/strings.h"

namespace sluice::cli {

namespace {

// `fits` on what the text is as a number.
CLI::Validator number_check(const char* name, const char* expected, bool (*fits)(double)) {
  return CLI::Validator(
      [=](const std::string& text) {
        double number = 0;
        if (CLI::detail::lexical_cast(text, number) && fits(number)) return std::string();
        return base::str("found ", text, ", expected ", expected);
      },
      name);
}

}  // namespace

const CLI::Validator kZeroOrMore =
    number_check("NONNEGATIVE", "a number of 0 or more", [](double number) { return number >= 0; });
const CLI::Validator kAboveZero =
    number_check("POSITIVE", "a number above 0", [](double number) { return number > 0; });

void add_verbs(CLI::App& program, const std::vector<Verb>& verbs, Action& action) {
  for (const Verb& verb : verbs) {
    CLI::App* app = program.add_subcommand(verb.name, verb.help);
    if (verb.hidden) app->group("");
    if (!verb.footer.empty()) app->footer(verb.footer);
    if (verb.add_flags) verb.add_flags(*app);
    add_verbs(*app, verb.verbs, action);
    if (!verb.run) {
      app->require_subcommand(1);
      continue;
    }
    app->callback([app, run = verb.run, &action] {
      if (app->get_subcommands().empty()) action = run;
    });
  }
}

const CLI::App& chosen_verb(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : chosen_verb(*chosen.front());
}

std::vector<const CLI::App*> shown_verbs(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); });
}

std::string nearest_flag(const CLI::App& app, const std::string& flag) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  return base::nearest(flag, flags);
}

namespace {

int fail(int status, const std::string& message) {
  std::fprintf(stderr, "sluice: %s\n", message.c_str());
  return status;
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
  for (const CLI::App* verb : shown_verbs(app)) verbs.push_back(verb->get_name());
  if (verbs.empty()) return base::str("unexpected argument \"", argument, "\"");
  const std::string near = base::nearest(argument, verbs);
  return base::str("unknown verb \"", argument, "\"",
                   near.empty() ? std::string() : base::str("; did you mean \"", near, "\"?"),
                   " Known: ", base::join(verbs, ", "));
}

int parse(CLI::App& program, const Action& action, int argc, char** argv) {
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
    return fail(2, extras.empty() ? std::string(error.what()) : unknown(chosen_verb(program), *first));
  } catch (const CLI::RequiredError& error) {
    // "A subcommand is required", where there is a word that is none.
    const auto extras = program.remaining(/*recurse=*/true);
    const bool verb = !extras.empty() && !shown_verbs(chosen_verb(program)).empty();
    return fail(2, verb ? unknown(chosen_verb(program), extras.front()) : std::string(error.what()));
  } catch (const CLI::ParseError& error) {
    return fail(2, error.what());
  }
  if (action) return action();
  std::fprintf(stderr, "%s", program.help().c_str());
  return 2;
}

}  // namespace

int parse_and_run(CLI::App& program, const std::vector<Verb>& verbs, int argc, char** argv) {
  Action action;
  add_verbs(program, verbs, action);
  try {
    return parse(program, action, argc, argv);
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
