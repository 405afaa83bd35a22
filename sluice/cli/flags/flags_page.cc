#include "sluice/cli/flags/flags_page.h"

#include <algorithm>

#include "sluice/base/text/join.h"
#include "sluice/cli/flags/command_tree.h"
#include "sluice/cli/flags/flag.h"

namespace sluice::cli {
namespace {

constexpr char kIntroduction[] =
    "# Flags\n"
    "\n"
    "Every verb of `sluice` with its arguments and flags. This page is written by the program, from the same "
    "tables as "
    "its `--help`: `sluice flags-page > docs/flags.md`.\n"
    "\n"
    "An empty value is refused, so that an unset variable of a script is noticed, but for flags that say "
    "what "
    "it means (`empty: …`).\n"
    "\n"
    "`sluice train --config FILE` takes any of its flags from a TOML file: the key is the flag's name "
    "without the "
    "dashes in front, with `_` or `-` between words, at the top of the file or in a table `[train]`. What "
    "the command "
    "line says wins. A list of shards may be a TOML array. [training.md](training.md) has the rest.\n";

std::string cell(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n') {
      result += ' ';
      continue;
    }
    if (c == '|' || c == '<' || c == '*' || c == '_') result += '\\';
    result += c;
  }
  return result;
}

std::string code(const std::string& text) { return text.empty() ? "" : base::str("`", text, "`"); }

// Returns "whole number, above 0" for "INT:POSITIVE".
std::string type_text(const CLI::Option& option) {
  if (!takes_value(option)) return "";
  std::vector<std::string> choices = choices_of(option);
  if (!choices.empty()) {
    std::transform(choices.begin(), choices.end(), choices.begin(), code);
    const std::string last = choices.back();
    choices.pop_back();
    return base::str(base::join(choices, ", "), " or ", last);
  }
  static const std::pair<const char*, const char*> kWords[] = {
      {":INT in ", " in "},       {":FLOAT in ", " in "},
      {"UINT", "whole number"},   {"INT", "whole number"},
      {"FLOAT", "number"},        {"TEXT", "text"},
      {":POSITIVE", ", above 0"}, {":NONNEGATIVE", ", 0 or more"},
      {":FILE", ", a file"}};
  std::string text = option.get_type_name();
  for (const auto& [from, to] : kWords)
    if (const std::size_t at = text.find(from); at != std::string::npos)
      text.replace(at, std::string(from).size(), to);
  return text;
}

// Returns a table of options; with `keys` it has the options' keys in a TOML file.
std::string table(const std::vector<const CLI::Option*>& options, bool keys) {
  std::string text =
      keys ? "\n| flag | key | value | default | unit | meaning |\n| --- | --- | --- | --- | --- | --- |\n"
           : "\n| argument | value | default | unit | meaning |\n| --- | --- | --- | --- | --- |\n";
  for (const CLI::Option* option : options) {
    const auto [help, unit] = help_and_unit(*option);
    const std::vector<std::string> names = long_names(*option);
    const std::string name = names.empty() ? option->get_name(/*positional=*/true) : base::join(names, ", ");
    text += base::str("| ", code(name), " | ");
    if (keys) text += code(name == "--config" || name == "--trust-config" ? "" : toml_key(name)) + " | ";
    text += base::str(cell(type_text(*option)), option->get_required() ? " (required)" : "", " | ",
                      code(option->get_default_str()), " | ", unit, " | ", cell(help), " |\n");
  }
  return text;
}

std::string section(const Command& command) {
  const CLI::App& app = *command.app;
  const bool keys = app.get_option_no_throw("--config") != nullptr;
  std::string text = base::str("\n## sluice ", command.path, "\n\n", app.get_description(), ".\n");
  std::vector<const CLI::Option*> arguments = positionals_of(app);
  for (const std::string& group : app.get_groups()) {
    if (group.empty()) continue;
    std::vector<const CLI::Option*> flags = arguments;
    arguments.clear();
    for (const CLI::Option* flag : flags_of(app))
      if (flag->get_group() == group && flag != app.get_help_ptr()) flags.push_back(flag);
    if (flags.empty()) continue;
    if (group != "Options") text += base::str("\n### ", group, " (", command.path, ")\n");
    text += table(flags, keys);
  }
  return text;
}

}  // namespace

std::string flags_page(const CLI::App& program) {
  std::string text = kIntroduction;
  for (const Command& command : commands(program))
    if (!command.path.empty()) text += section(command);
  return text;
}

}  // namespace sluice::cli
