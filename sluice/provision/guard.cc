#include "sluice/provision/guard.h"

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/pod/ssh/quote.h"
#include "sluice/provision/guard_text.h"

namespace sluice::provision {
namespace {

// Returns "P" of "projects/P/…".
std::string project_of(const std::string& node) {
  const auto parts = base::split(node, '/');
  return parts.size() > 1 ? parts[1] : std::string();
}

std::string settings_text(const GuardSettings& settings, const std::string& mode) {
  const bool is_fake = !settings.endpoint.empty();
  const std::string metadata =
      settings.metadata_host.empty() ? "metadata.google.internal" : settings.metadata_host;
  return base::str(
      "mode=", mode, "\nproject=", pod::quote(project_of(settings.node)),
      "\nnode=", pod::quote(settings.node), "\nqueued=", pod::quote(settings.queued),
      "\ndeadline=", settings.deadline, "\nidle=", settings.idle, "\nspeed=", settings.speed,
      "\ntpu=", pod::quote(is_fake ? settings.endpoint : "https://tpu.googleapis.com"),
      "\nprojects=", pod::quote(is_fake ? settings.endpoint : "https://cloudresourcemanager.googleapis.com"),
      "\nmetadata=", pod::quote("http://" + metadata), "\n");
}

// Returns a name that the host reports, in quotes if it is not a plain word.
std::string named(const std::string& text) { return pod::quote(text) == text ? text : pod::in_quotes(text); }

}  // namespace

std::string guard_script(const GuardSettings& settings, const std::string& mode) {
  return settings_text(settings, mode) + kGuardText;
}

std::string guard_startup_script(const GuardSettings& settings) {
  return "#!/bin/sh\n" + guard_script(settings, "boot");
}

bool has_guard(const std::string& startup_script) {
  return startup_script.find("sluice/guard") != std::string::npos;
}

base::Result<std::string> read_guard_answer(const std::string& messages) {
  bool up = false;
  std::string warning, lost;
  for (const std::string& line : base::split(messages, '\n')) {
    const std::string_view text = base::trim(line);
    const auto rest_of = [&](std::string_view start) {
      return text.starts_with(start) ? std::string(text.substr(start.size())) : std::string();
    };
    if (text == "sluice-guard up") up = true;
    if (const std::string lack = rest_of("sluice-guard lacks "); !lack.empty()) {
      const size_t space = lack.find(' ');
      warning = base::str("the TPU's own service account ",
                          space == std::string::npos ? "" : named(lack.substr(space + 1)) + " ", "lacks ",
                          named(lack.substr(0, space)),
                          ": the timer on worker 0 cannot end the TPU. Give it the role roles/tpu.admin, or "
                          "name another account with --service-account when the TPU is made");
    }
    if (const std::string why = rest_of("sluice-guard unknown "); !why.empty())
      warning =
          base::str("whether the timer on worker 0 may delete the TPU is not known: ", pod::in_quotes(why),
                    "; it needs the permission tpu.nodes.delete and the scope cloud-platform");
    if (const std::string why = rest_of("sluice-guard lost "); !why.empty()) lost = why;
  }
  if (up) return warning;
  return base::fail(Code::kUnavailable,
                    "the timer on worker 0 does not run: ", pod::in_quotes(lost.empty() ? messages : lost));
}

}  // namespace sluice::provision
