// The flags, session and output that verbs of Google's services share.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sluice/cli/flags/flag.h"
#include "sluice/provision/inventory.h"
#include "sluice/provision/slices.h"

namespace sluice::cli {

struct CloudFlags {
  std::vector<std::string> projects;  // empty: the default project
  std::string zone;
  bool json = false, dry_run = false, yes = false;
};

// The rows of --project (with `several` more than one), --zone, --json, --dry-run and --yes.
Flag project_row(CloudFlags& flags, bool several = false);
Flag zone_row(CloudFlags& flags);
Flag json_row(CloudFlags& flags);
Flag dry_run_row(CloudFlags& flags);
Flag yes_row(CloudFlags& flags);

// A session with Google's services, with the parts that one verb uses. Progress goes to standard error. While
// a session exists, Ctrl-C ends the requests under way, and the first SIGINT or SIGTERM is remembered.
class CloudSession {
 public:
  // Throws Error, and Usage for a text that cannot be a project's name.
  explicit CloudSession(const CloudFlags& flags);
  ~CloudSession();
  CloudSession(const CloudSession&) = delete;

  // One cloud for each project.
  std::vector<provision::Cloud>& clouds() { return clouds_; }
  provision::Cloud& cloud() { return clouds_.front(); }
  google::Api& api() { return *api_; }

 private:
  std::unique_ptr<google::Api> api_;
  std::vector<provision::Cloud> clouds_;
};

// Returns the value or throws: Usage for the user's mistakes, Interrupted (status 130) after Ctrl-C, else
// Error.
template <typename T>
T value_or_fail(google::Outcome<T> outcome);
// Throws the failure as value_or_fail does.
[[noreturn]] void throw_failure(const google::Failure& failure);
bool interrupted();
// Returns `body`'s status, or 130 with one line on standard error if it was interrupted.
int guard_interrupt(const std::function<int()>& body);

template <typename T>
T value_or_fail(google::Outcome<T> outcome) {
  if (!outcome) throw_failure(outcome.error());
  if constexpr (!std::is_void_v<T>) return std::move(*outcome);
}

// Asks y/N on the terminal; without a terminal it throws Usage, which asks for --yes.
bool confirmed(const CloudFlags& flags, const std::string& question);
// Asks y/N on the terminal; without a terminal the answer is yes.
bool confirmed_on_terminal(const CloudFlags& flags, const std::string& question);

google::Json json_of(const provision::Thing& thing);
// Returns the heading and a row for each thing.
std::vector<std::vector<std::string>> rows_of(const std::vector<provision::Thing>& things, bool kinds);
void print_document(const google::Json& json);
// Prints a line to standard output, without control characters that a service may have put into it.
void print_line(const std::string& line);
// Lists on standard error what did not answer. Returns the exit status: 1 if there is anything, else 0.
int say_unreachable(const std::vector<std::string>& unreachable);
// Notes on standard error the services ("PROJECT file.googleapis.com") of which nothing is listed.
void say_not_enabled(const std::vector<std::string>& not_enabled);
// Does both, for a whole list. Returns say_unreachable's status.
int say_gaps(const provision::Gaps& gaps);
// Prints "List prices (2026, us-central1 list), not the bill."
void say_price_note();

}  // namespace sluice::cli
