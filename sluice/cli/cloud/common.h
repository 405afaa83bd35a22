// What the verbs that speak with Google's services share.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sluice/provision/inventory.h"
#include "sluice/provision/slices.h"

namespace sluice::cli {

struct CloudFlags {
  std::vector<std::string> projects;  // none: the default one
  std::string zone;
  bool json = false, dry_run = false, yes = false;
};

// --project of one or (`several`) more, --json, --dry-run, --yes: those that the verb has.
void add_project(CLI::App& app, CloudFlags& flags, bool several = false);
void add_zone(CLI::App& app, CloudFlags& flags);
void add_json(CLI::App& app, CloudFlags& flags);
void add_dry_run(CLI::App& app, CloudFlags& flags);
void add_yes(CLI::App& app, CloudFlags& flags);

// The caller of Google's services and what of it one verb uses. Progress goes to standard error. While one
// exists, Ctrl-C ends what is under way; the first SIGINT or SIGTERM is remembered.
class CloudSession {
 public:
  // Throws Error, and Usage for what is no project's name.
  explicit CloudSession(const CloudFlags& flags);
  ~CloudSession();
  CloudSession(const CloudSession&) = delete;

  // One for each project.
  std::vector<provision::Cloud>& clouds() { return clouds_; }
  provision::Cloud& cloud() { return clouds_.front(); }
  google::Api& api() { return *api_; }

 private:
  std::unique_ptr<google::Api> api_;
  std::vector<provision::Cloud> clouds_;
};

// The value; else throws: Usage for what the user asked wrongly, Interrupted (status 130) after Ctrl-C,
// Error.
template <typename T>
T value_or_fail(google::Outcome<T> outcome);
// Status 130.
[[noreturn]] void throw_failure(const google::Failure& failure);
bool interrupted();
// `body`'s status, or 130 with one line when it was interrupted.
int guard_interrupt(const std::function<int()>& body);

template <typename T>
T value_or_fail(google::Outcome<T> outcome) {
  if (!outcome) throw_failure(outcome.error());
  if constexpr (!std::is_void_v<T>) return std::move(*outcome);
}

// y/N on the terminal; without one, Usage that asks for --yes.
bool confirmed(const CloudFlags& flags, const std::string& question);
// y/N on the terminal; without one, yes.
bool confirmed_on_terminal(const CloudFlags& flags, const std::string& question);

google::Json json_of(const provision::Thing& thing);
// The heading and a row for each.
std::vector<std::vector<std::string>> rows_of(const std::vector<provision::Thing>& things, bool kinds);
void print_document(const google::Json& json);
// On standard output; what services say in it has nothing that a terminal would obey.
void print_line(const std::string& line);
// What did not answer, on standard error; the exit status: 1 when there is something, else 0.
int say_unreachable(const std::vector<std::string>& unreachable);
// "List prices (2026, us-central1 list), not the bill."
void say_price_note();

}  // namespace sluice::cli
