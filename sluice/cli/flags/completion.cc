#include "sluice/cli/flags/completion.h"

#include <algorithm>

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/cli/flags/command_tree.h"
#include "sluice/cli/verb.h"

namespace sluice::cli {
namespace {

// Quotes the text for bash and zsh, in single quotes.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// Returns a pattern of a `case` that matches any of these texts.
std::string any_of(const std::vector<std::string>& texts) {
  std::vector<std::string> patterns;
  for (const std::string& text : texts) patterns.push_back(quoted(text));
  return base::join(patterns, "|");
}

std::vector<std::string> paths(const std::vector<Command>& all) {
  std::vector<std::string> result;
  for (const Command& command : all)
    if (!command.path.empty()) result.push_back(command.path);
  return result;
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* flag : flags_of(app))
    for (std::string& name : long_names(*flag)) names.push_back(std::move(name));
  return names;
}

// Returns the words that may stand where no flag does: verbs, or the values of a positional argument.
std::vector<std::string> words_of(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* verb : shown_verbs(app)) words.push_back(verb->get_name());
  for (const CLI::Option* positional : positionals_of(app))
    for (std::string& choice : choices_of(*positional)) words.push_back(std::move(choice));
  return words;
}

// Whether the value may be a file name, which only a text can be.
bool may_be_file(const CLI::Option& option) {
  return choices_of(option).empty() && base::starts_with(option.get_type_name(), "TEXT");
}

}  // namespace

std::string bash_completion(const CLI::App& program) {
  const std::vector<Command> all = commands(program);
  std::string words, values;
  std::vector<std::string> free;  // flags that take any value
  for (const auto& [path, app] : all) {
    words += base::str("    ", quoted(path), ") words=", quoted(base::join(words_of(*app), " ")),
                       "\n      flags=", quoted(base::join(flag_names(*app), " ")), " ;;\n");
    for (const CLI::Option* flag : flags_of(*app)) {
      if (!takes_value(*flag)) continue;
      for (const std::string& name : long_names(*flag)) {
        const auto choices = choices_of(*flag);
        if (choices.empty())
          free.push_back(base::str(path, " ", name));
        else
          values += base::str("    ", quoted(base::str(path, " ", name)), ") COMPREPLY=($(compgen -W ",
                              quoted(base::join(choices, " ")), " -- \"$word\")); return ;;\n");
      }
    }
  }
  return base::str(R"(# bash completion of sluice, written by `sluice completion bash`.
_sluice() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb='' words flags i next
  # bash takes --flag=value for three words.
  if [[ $word == '=' ]]; then word=''
  elif [[ $before == '=' ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    next="${verb:+$verb }${COMP_WORDS[i]}"
    case $next in
    )",
                   any_of(paths(all)), R"() verb=$next ;;
    *) break ;;
    esac
  done
  for ((; i < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} == -- ]] || continue
    # A command of somebody else's.
    if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); fi
    return
  done
  case "$verb $before" in
)",
                   values, "    ", any_of(free), R"() return ;;  # names of files
  esac
  case $verb in
)",
                   words, R"(  esac
  if [[ $word == -* ]]; then words=$flags; fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _sluice sluice
)");
}

namespace {

// Returns the flag for zsh's _arguments: --flag=[help]:value:(one two).
std::string zsh_spec(const std::string& name, const CLI::Option& flag) {
  std::string help;
  for (const char c : flag.get_description()) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') help += '\\';
    help += c;
  }
  if (!takes_value(flag)) return base::str(name, "[", help, "]");
  const std::string action = !choices_of(flag).empty()
                                 ? base::str("(", base::join(choices_of(flag), " "), ")")
                             : may_be_file(flag) ? std::string("_files")
                                                 : std::string(" ");
  const bool optional = flag.get_expected_min() == 0;
  return base::str(name, "=[", help, "]", optional ? "::" : ":", "value:", action);
}

std::string without_colons(std::string text) {
  std::replace(text.begin(), text.end(), ':', ';');
  return text;
}

}  // namespace

std::string zsh_completion(const CLI::App& program) {
  const std::vector<Command> all = commands(program);
  std::string cases;
  for (const auto& [path, app] : all) {
    cases += base::str("  ", quoted(path), ")\n    verbs=(");
    for (const CLI::App* verb : shown_verbs(*app))
      cases += "\n      " + quoted(base::str(verb->get_name(), ":", without_colons(verb->get_description())));
    cases += ")\n    flags=(";
    for (const CLI::Option* flag : flags_of(*app))
      for (const std::string& name : long_names(*flag)) cases += "\n      " + quoted(zsh_spec(name, *flag));
    bool any = false;
    for (const CLI::Option* positional : positionals_of(*app)) {
      const auto choices = choices_of(*positional);
      any = true;
      cases +=
          "\n      " + quoted(base::str("*:", without_colons(positional->get_name()), ":",
                                        choices.empty() ? "_files" : "(" + base::join(choices, " ") + ")"));
      break;  // further positional arguments are of the same kind
    }
    cases += any ? ") ;;\n" : "\n      '*: : ') ;;\n";
  }
  return base::str(R"(#compdef sluice
# zsh completion of sluice, written by `sluice completion zsh`.
_sluice() {
  local verb='' next
  local -a verbs flags
  local -i i
  for ((i = 2; i < CURRENT; ++i)); do
    next="${verb:+$verb }${words[i]}"
    case $next in
    )",
                   any_of(paths(all)), R"() verb=$next ;;
    *) break ;;
    esac
  done
  case $verb in
)",
                   cases, R"(  esac
  # What follows -- is a command of somebody else's.
  local -i dashes=${words[(ie)--]}
  if ((dashes < CURRENT)); then
    words=("${(@)words[dashes + 1,-1]}")
    ((CURRENT -= dashes))
    _normal
    return
  fi
  words=("${words[i - 1]}" "${(@)words[i,-1]}")
  ((CURRENT -= i - 2))
  if ((CURRENT == 2 && ${#verbs})) && [[ ${words[2]} != -* ]]; then
    _describe verb verbs
    return
  fi
  _arguments : "${flags[@]}"
}
if [[ ${funcstack[1]} == _sluice ]]; then
  _sluice "$@"
else
  compdef _sluice sluice
fi
)");
}

namespace {

// Quotes the text for fish, in single quotes.
std::string fish_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

}  // namespace

std::string fish_completion(const CLI::App& program) {
  const std::vector<Command> all = commands(program);
  std::vector<std::string> known;
  for (const std::string& path : paths(all)) known.push_back(fish_quoted(path));
  std::string text = base::str(R"fish(# fish completion of sluice, written by `sluice completion fish`.
# Whether the words before the cursor are these verbs, and no others.
function __sluice_at
    set -l verb
    set -l words (commandline -opc)
    for word in $words[2..]
        contains -- "$(string join ' ' -- $verb $word)" )fish",
                               base::join(known, " "), R"fish(
        or break
        set -a verb $word
    end
    test "$verb" = "$argv[1]"
end
)fish");
  for (const auto& [path, app] : all) {
    const std::string start = base::str("complete -c sluice -n \"__sluice_at ", fish_quoted(path), "\"");
    for (const CLI::App* verb : shown_verbs(*app))
      text +=
          base::str(start, " -f -a ", verb->get_name(), " -d ", fish_quoted(verb->get_description()), "\n");
    for (const CLI::Option* positional : positionals_of(*app))
      if (const auto choices = choices_of(*positional); !choices.empty())
        text += base::str(start, " -f -a ", fish_quoted(base::join(choices, " ")), "\n");
    for (const CLI::Option* flag : flags_of(*app)) {
      const auto choices = choices_of(*flag);
      for (const std::string& name : long_names(*flag)) {
        text += base::str(start, " -l ", name.substr(2));
        if (!choices.empty())
          text += base::str(" -x -a ", fish_quoted(base::join(choices, " ")));
        else if (takes_value(*flag) && flag->get_expected_min() > 0)
          text += may_be_file(*flag) ? " -r" : " -x";
        text += base::str(" -d ", fish_quoted(flag->get_description()), "\n");
      }
    }
  }
  return text;
}

}  // namespace sluice::cli
