#include "sluice/provision/environment/notices.h"

#include <algorithm>

#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"

namespace sluice::provision {
namespace {

using base::str;

bool makes(const Plan& plan, Part part) {
  return std::any_of(plan.steps.begin(), plan.steps.end(), [part](const Step& step) {
    return step.part == part && (step.act == Act::kCreate || step.act == Act::kFill);
  });
}

// Adds the script that is sent and the variables next to it. `whom`: "the machines".
void sent(const std::string& section, const std::string& whom, const std::optional<Script>& script,
          const Variables& variables, std::vector<std::string>& lines) {
  if (script)
    lines.push_back(str("sends ", script->path, " (", script->text.size(), " bytes) to ", whom,
                        ", which run it as root; who may view them in the project can read it"));
  if (variables.empty()) return;
  std::vector<std::string> names;
  for (const auto& [name, value] : variables) names.push_back(name);
  lines.push_back(str("the values of ", section, ".variables (", base::join(names, ", "),
                      ") are in the metadata of ", whom,
                      ": who may view them in the project, and every program on them, can read them. Keep "
                      "secrets in Secret Manager"));
}

// Returns whether the range is so large that nearly everybody is in it.
bool is_open(const std::string& range) {
  const size_t slash = range.find('/');
  const bool six = range.find(':') != std::string::npos;
  const int bits = base::number_of<int>(range.substr(slash + 1)).value_or(0);
  return bits < 8 || (six && bits < 16);
}

void open_ports(const Settings& settings, std::vector<std::string>& lines) {
  for (const std::string& range : settings.ssh_from)
    if (is_open(range))
      lines.push_back(str("env.ssh_from ", range,
                          " opens port 22 (ssh) to the whole internet, or much of it: a range of your own "
                          "is enough, and without one ssh comes through Identity-Aware Proxy"));
}

void open_share(const Settings& settings, std::vector<std::string>& lines) {
  if (settings.nfs->clients.empty() && !settings.network.empty())
    lines.push_back(str("every machine in the network ", settings.network,
                        " can mount the share and write to it: nfs.clients limits that to ranges"));
}

}  // namespace

std::vector<std::string> notices(const Settings& settings, const Plan& plan) {
  std::vector<std::string> lines;
  if (makes(plan, Part::kFirewall)) open_ports(settings, lines);
  if (makes(plan, Part::kNfs) && settings.nfs) open_share(settings, lines);
  if (makes(plan, Part::kPrepare) && settings.disk)
    sent("disk", "the machine that fills the disk", settings.disk->script, settings.disk->variables, lines);
  if (makes(plan, Part::kMachine) && settings.machines)
    sent("machines", "the machines", settings.machines->setup, settings.machines->variables, lines);
  if (makes(plan, Part::kTpu) && settings.tpu)
    sent("tpu", "the TPU's hosts", settings.tpu->setup, settings.tpu->variables, lines);
  return lines;
}

}  // namespace sluice::provision
