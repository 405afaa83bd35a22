#include "sluice/cli/verb.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/shown_text.h"
#include "sluice/base/text/strings.h"
#include "sluice/cli/flags/value_check.h"
#include "sluice/cli/standard_output.h"

namespace sluice::cli {

namespace {

// Returns a validator that passes a text whose number `fits`.
CLI::Validator number_check(const char* name, const char* expected, bool (*fits)(double)) {
  return CLI::Validator(
      [=](const std::string& text) {
        double number = 0;
        if (CLI::detail::lexical_cast(text, number) && fits(number)) return std::string();
        return base::str("expected ", expected, ", found ", text);
      },
      name);
}

}  // namespace

const CLI::Validator kZeroOrMore =
    number_check("NONNEGATIVE", "a number of 0 or more", [](double number) { return number >= 0; });
const CLI::Validator kAboveZero =
    number_check("POSITIVE", "a number above 0", [](double number) { return number > 0; });

CLI::Validator one_of(std::vector<std::string> texts) {
  return CLI::Validator(
      [texts = std::move(texts)](const std::string& text) {
        if (std::find(texts.begin(), texts.end(), text) != texts.end()) return std::string();
        return base::str("expected ", base::join(texts, ", "), ", found '", text, "'");
      },
      "");
}

void add_verbs(CLI::App& program, const std::vector<Verb>& verbs, Action& action) {
  for (const Verb& verb : verbs) {
    CLI::App* app = program.add_subcommand(verb.name, verb.help);
    if (verb.hidden) app->group("");
    if (!verb.footer.empty()) app->footer(verb.footer);
    if (verb.add_flags) verb.add_flags(*app);
    check_values(*app);
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
  std::fprintf(stderr, "sluice: %s\n", base::shown_text(message).c_str());
  return status;
}

// Returns, for example, "sluice data pack".
std::string path_of(const CLI::App& app) {
  const CLI::App* const parent = app.get_parent();
  return parent == nullptr ? std::string("sluice") : base::str(path_of(*parent), " ", app.get_name());
}

// Returns the message for an argument that no verb takes.
std::string unknown(const CLI::App& app, const std::string& argument) {
  if (base::starts_with(argument, "-")) {
    const std::string near = nearest_flag(app, argument.substr(0, argument.find('=')));
    return base::str("unknown flag ", argument,
                     near.empty() ? std::string(".") : base::str("; did you mean ", near, "?"), " See ",
                     path_of(app), " --help.");
  }
  if (app.get_parent() != nullptr && app.get_require_subcommand_min() == 0)  // `sluice run` has verbs, too
    return base::str("unexpected argument \"", argument, "\"");
  std::vector<std::string> verbs;
  for (const CLI::App* verb : shown_verbs(app)) verbs.push_back(verb->get_name());
  const std::string near = base::nearest(argument, verbs);
  return base::str("unknown verb \"", argument, "\"",
                   near.empty() ? std::string(".") : base::str("; did you mean \"", near, "\"?"),
                   " Known: ", base::join(verbs, ", "));
}

// Returns the first unused word that is to blame: a flag (the words after it are then out of place), else a
// word where a verb was expected; else "".
std::string mistaken_word(const CLI::App& program) {
  const auto extras = program.remaining(/*recurse=*/true);
  const auto flag = std::find_if(extras.begin(), extras.end(), [](const std::string& extra) {
    return base::starts_with(extra, "-") && extra != "--";
  });
  if (flag != extras.end()) return *flag;
  return extras.empty() || shown_verbs(chosen_verb(program)).empty() ? "" : extras.front();
}

int parse(CLI::App& program, const Action& action, const std::vector<std::string>& words) {
  try {
    parse_line(program, words);
  } catch (const CLI::Success& help) {
    return program.exit(help);
  }
  if (action) return action();
  std::fprintf(stderr, "%s", program.help().c_str());
  return 2;
}

// Removes the stack trace that LibTorch's messages have from their second line on, and rewrites its message
// about missing memory, which refers to LibTorch's own source.
std::string plain_message(std::string text) {
  for (const char* trace : {"\nException raised from", "\nframe #"}) text = text.substr(0, text.find(trace));
  const std::string tried = "you tried to allocate ";
  const std::size_t at = text.find(tried);
  if (at == std::string::npos || text.find("DefaultCPUAllocator") == std::string::npos) return text;
  const std::string bytes =
      text.substr(at + tried.size(), text.find(' ', at + tried.size()) - at - tried.size());
  const auto number = base::number_of<std::uint64_t>(bytes);
  return base::str(
      "out of memory: ", bytes, " bytes", number ? base::str(" (", base::memory_text(*number), ")") : "",
      " for one tensor were not there; a smaller --batch-size, --image-size or --length needs less");
}

// Returns the status of an action that may throw.
int status_of(const Action& run) {
  try {
    return run();
  } catch (const Usage& error) {
    return fail(2, error.what());
  } catch (const std::exception& error) {
    return fail(1, plain_message(error.what()));
  }
}

}  // namespace

void parse_line(CLI::App& program, const std::vector<std::string>& words) {
  if (const std::string missing = missing_value(program, words); !missing.empty()) throw Usage(missing);
  try {
    program.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp&) {
    // CLI11 would print the whole program's help for a verb that does not exist.
    const std::string word = mistaken_word(program);
    if (!word.empty() && !shown_verbs(chosen_verb(program)).empty())
      throw Usage(unknown(chosen_verb(program), word));
    throw;
  } catch (const CLI::Success&) {
    throw;
  } catch (const CLI::ExtrasError& error) {
    std::string word = mistaken_word(program);
    const auto extras = program.remaining(/*recurse=*/true);
    if (word.empty() && !extras.empty()) word = extras.front();
    throw Usage(word.empty() ? std::string(error.what()) : unknown(chosen_verb(program), word));
  } catch (const CLI::RequiredError& error) {
    // The required word may have been there: as a misspelt verb, or taken as the value of an unknown flag.
    const std::string word = mistaken_word(program);
    throw Usage(word.empty() ? std::string(error.what()) : unknown(chosen_verb(program), word));
  } catch (const CLI::ParseError& error) {
    throw Usage(message_of(error));
  }
}

int parse_and_run(CLI::App& program, const std::vector<Verb>& verbs, int argc, char** argv) {
  Action action;
  add_verbs(program, verbs, action);
  const auto run = [&] { return parse(program, action, {argv + std::min(argc, 1), argv + argc}); };
  return checked_output(status_of(run));
}

}  // namespace sluice::cli
