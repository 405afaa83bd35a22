#include "sluice/pjrt/machine/choose_plugin.h"

#include "sluice/base/environment.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/pjrt/machine/chip_use.h"

namespace sluice::pjrt {
namespace {

// Whether CUDA's own variable hides the GPUs.
bool gpus_are_hidden() {
  const auto visible = base::environment_even_empty("CUDA_VISIBLE_DEVICES");
  return visible && (visible->empty() || *visible == "-1");
}

// Takes the TPU if this process can use it; else `unused` says why not.
bool take_tpu(PluginChoice& choice, const Machine& machine, const std::vector<std::string>& folders) {
  if (!machine.has_tpu()) return false;
  const auto file = find_plugin("tpu", folders);
  const base::Status usable = file ? check_chips(machine) : base::Status();
  if (file && usable) {
    choice.file = *file;
    choice.reason = machine.tpu_text();
    return true;
  }
  choice.unused = base::str(machine.tpu_text(), ": ", file ? usable.error().what() : file.error().what());
  choice.unexpected = true;
  return false;
}

bool take_gpu(PluginChoice& choice, const Machine& machine, const std::vector<std::string>& folders) {
  if (!machine.has_gpu() || gpus_are_hidden()) return false;
  const auto file = find_plugin("cuda", folders);
  if (file) {
    choice.file = *file;
    choice.reason = machine.gpu_text();
  } else if (choice.unused.empty()) {
    choice.unused = base::str(machine.gpu_text(), ": ", file.error().what());
  }
  return file.has_value();
}

base::Result<PluginChoice> choose_by_machine(const Machine& machine,
                                             const std::vector<std::string>& folders) {
  PluginChoice choice;
  choice.automatic = true;
  if (take_tpu(choice, machine, folders) || take_gpu(choice, machine, folders)) return choice;
  SLUICE_TRY(choice.file, find_plugin("cpu", folders));
  choice.reason = machine.has_tpu() || machine.has_gpu() ? "this machine's accelerators cannot be used"
                                                         : "this machine has no accelerator";
  return choice;
}

// Logs what is not used.
void say_unused(const PluginChoice& choice) {
  if (choice.unused.empty()) return;
  if (!choice.unexpected) {
    base::info("not used: ", choice.unused);
    return;
  }
  base::warn("THE TPU IS NOT USED, this program runs on the ", choice.file.name, " plugin: ", choice.unused,
             ". Where that is meant, say --plugin ", choice.file.name,
             " or SLUICE_PLUGIN=", choice.file.name);
}

}  // namespace

std::string PluginChoice::text() const {
  const char* library = file.name == "tpu" ? "libtpu" : "plugin";
  return base::str("plugin: ", file.name, ", ", reason, ", ", library, " from ", file.path);
}

std::string wanted_plugin(const std::string& given) {
  return given.empty() ? base::environment("SLUICE_PLUGIN").value_or("auto") : given;
}

std::string plugin_without_chips(const std::string& given) {
  return wanted_plugin(given) == "auto" ? "cpu" : given;
}

base::Result<PluginChoice> choose_plugin(const std::string& given) {
  return choose_plugin(given, find_machine(), plugin_search_folders());
}

base::Result<PluginChoice> choose_plugin(const std::string& given, const Machine& machine,
                                         const std::vector<std::string>& folders) {
  const std::string wanted = wanted_plugin(given);
  if (wanted == "auto") return choose_by_machine(machine, folders);
  PluginChoice choice;
  choice.reason = given.empty() ? "asked for by SLUICE_PLUGIN" : "asked for";
  // Without a TPU, libtpu would search for minutes and then say less.
  if (wanted == "tpu" && !machine.has_tpu() && !base::environment("TPU_LIBRARY_PATH"))
    return base::fail(
        Code::kFailedPrecondition, "the plugin tpu is ", choice.reason,
        ", and this machine shows no TPU: no chip on its PCI bus, no /dev/accelN; run this on a "
        "TPU (`sluice tpu create` makes one), or say --plugin cpu or SLUICE_PLUGIN=cpu. Where "
        "chips are there and cannot be seen, give the path of libtpu.so instead of the name");
  SLUICE_TRY(choice.file, find_plugin(wanted, folders));
  if (machine.has_tpu() && (choice.file.name == "cpu" || choice.file.name == "cuda"))
    choice.unused =
        base::str(machine.tpu_text(), ", as the ", choice.file.name, " plugin is ", choice.reason);
  return choice;
}

base::Result<std::shared_ptr<Plugin>> open_plugin(const std::string& given, int processes) {
  const Machine machine = find_machine();
  SLUICE_TRY(const PluginChoice choice, choose_plugin(given, machine, plugin_search_folders()));
  if (choice.unexpected && processes > 1) {
    return base::fail(Code::kFailedPrecondition, "this process is one of ", processes,
                      " and cannot use its machine's TPU, ", choice.unused,
                      ". If all are to run on the CPU, say --plugin cpu or SLUICE_PLUGIN=cpu");
  }
  if (choice.file.name == "tpu" && !choice.automatic) {
    if (auto usable = check_chips(machine); !usable)
      return base::fail_at(usable, "cannot use ", machine.tpu_text());
  }
  base::log(choice.automatic && choice.file.name != "cpu" ? base::Level::kInfo : base::Level::kDebug,
            choice.text());
  say_unused(choice);
  return Plugin::load(choice.file);
}

}  // namespace sluice::pjrt
