#include "sluice/cli/config.h"

#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/formats/parse_toml.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/cli/flags/old_flags.h"
#include "sluice/cli/flags/value_check.h"
#include "sluice/cli/verb.h"

namespace sluice::cli {
namespace {

constexpr const char* kTrust = "--trust-config";

// Returns the value as text; `place` is the file and the line.
std::string text_of(const toml::node& value, const std::string& key, const std::string& place) {
  if (auto text = value.value<std::string>()) return *text;
  std::ostringstream out;
  if (auto boolean = value.as_boolean()) return boolean->get() ? "true" : "false";
  if (auto whole = value.as_integer()) return base::str(whole->get());
  if (auto real = value.as_floating_point()) {
    out.precision(17);
    out << real->get();
    return out.str();
  }
  throw Usage(
      base::str(place, ": the value of ", key, " must be a text, a number, true, false, or a list of these"));
}

std::vector<std::string> texts_of(const toml::node& value, const std::string& key, const std::string& place) {
  const auto* list = value.as_array();
  if (list == nullptr) return {text_of(value, key, place)};
  std::vector<std::string> items;
  for (const auto& item : *list) items.push_back(text_of(item, key, place));
  return items;
}

// Whether the value names a program that the verb would run: a plugin's file, or a command among shards.
bool is_program(const std::string& key, const std::string& text) {
  if (key == "allow-pipe") return text == "true";
  if (key == "plugin") return text.find('/') != std::string::npos || base::ends_with(text, ".so");
  for (size_t at = text.find("pipe:"); at != std::string::npos; at = text.find("pipe:", at + 1))
    if (at == 0 || text[at - 1] == ':' || text[at - 1] == ',' || text[at - 1] == '=') return true;
  return false;
}

// Throws Usage for programs without --trust-config: a file of flags may come with a cloned repository.
void check_programs(const CLI::App& verb, const toml::node& value, const std::string& key,
                    const std::string& place) {
  const CLI::Option* const trust = verb.get_option_no_throw(kTrust);
  if (trust != nullptr && trust->count() > 0) return;
  for (const std::string& text : texts_of(value, key, place))
    if (is_program(key, text))
      throw Usage(base::str(place, ": ", key, " = \"", text, "\" has a program run: give ", kTrust,
                            " if you trust this file, or say it on the command line"));
}

// Gives the option the value of its key.
void apply_value(CLI::Option& option, const toml::node& value, const std::string& key,
                 const std::string& place) {
  try {
    if (value.is_array()) {
      const std::vector<std::string> items = texts_of(value, key, place);
      if (option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll)
        option.add_result(items);
      else
        option.add_result(base::join(items, key == "train" || key == "test" ? "::" : ","));
    } else {
      option.add_result(text_of(value, key, place));
    }
    option.run_callback();
  } catch (const CLI::ParseError& error) {
    throw Usage(base::str(place, ": ", message_of(error)));
  }
}

void apply_table(CLI::App& verb, const toml::table& table, const std::string& path) {
  for (const auto& [name, value] : table) {
    std::string key(name.str());
    if (key == verb.get_name() && value.is_table()) {
      apply_table(verb, *value.as_table(), path);
      continue;
    }
    const std::string place = base::str(path, ":", value.source().begin.line);
    std::replace(key.begin(), key.end(), '_', '-');
    const bool on_line_alone = key == "config" || "--" + key == kTrust;
    CLI::Option* option = on_line_alone ? nullptr : verb.get_option_no_throw("--" + key);
    if (option == nullptr) {
      if (const std::string answer = answer_to_old_key(std::string(name.str())); !answer.empty())
        throw Usage(base::str(place, ": ", answer));
      const std::string near = nearest_flag(verb, "--" + key);
      throw Usage(
          base::str(place, ": unknown key ", name.str(),
                    near.empty() ? std::string() : base::str("; did you mean ", near.substr(2), "?")));
    }
    if (option->count() > 0) continue;  // the command line wins
    check_programs(verb, value, key, place);
    apply_value(*option, value, key, place);
  }
}

// Flags and the environment variables with the same meaning.
constexpr std::pair<const char*, const char*> kVariables[] = {{"--plugin", "SLUICE_PLUGIN"},
                                                              {"--device", "SLUICE_DEVICE"},
                                                              {"--devices", "SLUICE_DEVICES"},
                                                              {"--strict", "SLUICE_STRICT"},
                                                              {"--detect-anomaly", "SLUICE_DETECT_ANOMALY"},
                                                              {"--exact", "SLUICE_EXACT"},
                                                              {"--cpu-kernels", "SLUICE_CPU_KERNELS"},
                                                              {"--profiler-port", "SLUICE_PROFILER_PORT"},
                                                              {"--status-port", "SLUICE_STATUS_PORT"}};

bool is_switch(std::string_view flag) {
  return flag == "--strict" || flag == "--detect-anomaly" || flag == "--exact" || flag == "--cpu-kernels";
}

}  // namespace

std::set<std::string> apply_environment(CLI::App& verb) {
  std::set<std::string> flags;
  for (const auto& [flag, variable] : kVariables) {
    CLI::Option* option = verb.get_option_no_throw(flag);
    const auto text = base::environment(variable);
    if (option == nullptr || !text || option->count() > 0) continue;
    if (is_switch(flag) && !base::switch_of(*text)) continue;  // the device warns about a wrong switch
    try {
      option->add_result(*text);
      option->run_callback();
    } catch (const CLI::ParseError& error) {
      // The message about a list of devices begins with the name of what has it.
      const std::string text = message_of(error);
      const bool named = std::string_view(flag) == "--devices";
      throw Usage(named ? variable + text.substr(std::string_view(flag).size())
                        : base::str(variable, ": ", text));
    }
    flags.insert(flag);
  }
  return flags;
}

void check_toml_file(const std::string& path) {
  if (base::is_directory(path)) throw Usage(base::str(path, ": expected a TOML file, found a folder"));
  if (!base::path_exists(path)) throw Usage(base::str(path, " does not exist: expected a TOML file"));
  if (::access(path.c_str(), R_OK) != 0) throw Usage(base::str(path, ": this user may not read it"));
}

void apply_config(CLI::App& verb, const std::string& path) {
  check_toml_file(path);
  apply_table(verb, value_or_usage(base::parse_toml_file(path)), path);
}

}  // namespace sluice::cli
