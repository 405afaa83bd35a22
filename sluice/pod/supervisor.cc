#include "sluice/pod/supervisor.h"

#include "sluice/pod/ssh/quote.h"
#include "sluice/pod/supervisor_text.h"

namespace sluice::pod {

std::string worker_script(const Variables& variables, const std::string& folder,
                          const std::vector<std::string>& command, const std::string& program) {
  // The number is written before anything can fail; exec keeps it. The file has room for it even on a full
  // disk.
  std::string script = "echo $$ 1<>pid\n";
  // The path where program.sh has installed it, computed before the variables are set.
  if (!program.empty())
    script += base::str("sluice_program=\"${XDG_CACHE_HOME:-$HOME/.cache}/sluice/programs/", program, "\"\n");
  for (const auto& [name, value] : variables) script += base::str("export ", name, '=', quote(value), '\n');
  if (!program.empty()) script += "export PATH=\"$sluice_program/bin:$PATH\"\n";
  if (!folder.starts_with('/')) script += "cd -- \"$HOME\" || exit 126\n";
  if (!folder.empty()) script += base::str("cd -- ", quote(folder), " || exit 126\n");
  return base::str(script, "exec ", quote_all(command));
}

std::string supervisor_script(const SupervisorSettings& settings) {
  return base::str("mode=", settings.mode, "\nrun=", quote(settings.run),
                   "\nattempt=", quote(settings.attempt), "\nworker=", settings.worker,
                   "\nlease=", settings.lease, "\npatience=", settings.patience, "\ngrace=", settings.grace,
                   "\noffset=", settings.offset, "\nspace=", settings.space, "\nport=", settings.port,
                   "\nclock=", settings.clock ? 1 : 0, "\nkeeper=", quote(kKeeperText),
                   "\nscript=", quote(settings.script), '\n', kSupervisorText);
}

}  // namespace sluice::pod
