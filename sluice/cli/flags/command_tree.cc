#include "sluice/cli/flags/command_tree.h"

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/cli/verb.h"

namespace sluice::cli {
namespace {

void collect(const CLI::App& app, const std::string& path, std::vector<Command>& result) {
  result.push_back({path, &app});
  for (const CLI::App* verb : shown_verbs(app))
    collect(*verb, path.empty() ? verb->get_name() : base::str(path, " ", verb->get_name()), result);
}

}  // namespace

std::vector<Command> commands(const CLI::App& program) {
  std::vector<Command> result;
  collect(program, "", result);
  return result;
}

std::vector<const CLI::Option*> flags_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_lnames().empty(); });
}

std::vector<const CLI::Option*> positionals_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

std::vector<std::string> long_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.find('|') == std::string::npos) return {};
  return base::split(type, '|');
}

std::pair<std::string, std::string> help_and_unit(const CLI::Option& option) {
  const std::string& text = option.get_description();
  const std::size_t open = text.rfind(" [");
  if (open == std::string::npos || text.back() != ']') return {text, ""};
  return {text.substr(0, open), text.substr(open + 2, text.size() - open - 3)};
}

}  // namespace sluice::cli
