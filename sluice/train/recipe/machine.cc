#include "sluice/train/recipe/sections.h"

#include <memory>

#include "sluice/base/environment.h"
#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/pjrt/machine/find_plugin.h"
#include "sluice/pjrt/machine/plugin_help.h"
#include "sluice/replica/placement.h"
#include "sluice/session/device_list.h"
#include "sluice/train/recipe/choice.h"
#include "sluice/train/recipe/parsed.h"
#include "sluice/train/recipe/reasons.h"

namespace sluice::train {
namespace recipe_machine_detail {

// Reads --devices and --device-ids: a number of devices, or a list. A list of ids takes precedence, in any
// order.
struct DeviceTexts {
  TrainOptions& o;
  std::shared_ptr<bool> has_ids = std::make_shared<bool>(false);

  void read_devices(const std::string& text) const {
    const sessions::DeviceList list = sessions::parse_devices("--devices", text);
    if (!*has_ids) o.devices = list.count, o.device_ids = list.ids;
  }
  void read_ids(const std::string& text) const {
    const std::vector<int> ids = sessions::parse_device_ids("--device-ids", text);
    *has_ids = !ids.empty();
    if (*has_ids) o.devices = static_cast<int>(ids.size()), o.device_ids = ids;
  }
};

}  // namespace recipe_machine_detail

// clang-format off
std::vector<base::Flag> machine_rows(TrainOptions& o) {
  using base::Flag;
  using pjrt::kPluginHelp;
  const recipe_machine_detail::DeviceTexts texts{o};
  const auto read_devices = [texts](const std::string& text) { texts.read_devices(text); };
  const auto read_ids = [texts](const std::string& text) { texts.read_ids(text); };
  return {
      Flag{"Machine", "--device", choice("--device", o.device), "", "Train on xla, which --plugin chooses, or on cpu, LibTorch's own CPU (eager)"},
      Flag{"Machine", "--plugin", &o.plugin, "", base::str("PJRT plugin of xla: ", kPluginHelp)}
          .idle(without_xla(o)),
      Flag{"Machine", "--devices", base::ParsedText{read_devices}, "", "Use a number of devices, all, or a list of them: [5] or 5,; empty: all of a TPU or GPU, 1 of a CPU"}
          .checked([&o] { base::check_least("--devices", o.devices, /*least=*/0); })
          .idle({.causes = {"--device-ids"}, .why = "--device-ids names them: give one", .beside = "--device-ids"}),
      Flag{"Machine", "--device-ids", base::ParsedText{read_ids}, "", "Use the devices with these ids: 5 or 0,1,4"},
      Flag{"Machine", "--mesh", parsed("--mesh", o.mesh), "", "Share one model among the devices of all processes: fsdp=8, or data=2,fsdp=-1; empty: each device has all of it"}
          .idle(without_xla(o)),
      Flag{"Machine", "--precision", choice("--precision", o.precision), "", "Compute products of the forward and backward pass in this type (weights stay f32)"}
          .setting(ranks::kPrecision),
      Flag{"Machine", "--recompute", &o.recompute, "", "Compute the layers of a transformer or a language model again in the backward pass: less memory, a third more work; default: with --mesh and fsdp above 1"},
      Flag{"Machine", "--sync-batch-norm", &o.sync_batch_norm, "", "Compute BatchNorm's statistics over the batches of all replicas"}
          .idle(without_xla(o)),
      Flag{"Machine", "--check-replicas", &o.check_replicas, "steps", "Compare the weights on all replicas every N steps (slow); 0: never"}
          .at_least(0).idle(without_xla(o)),
      Flag{"Machine", "--cpu-kernels", base::OpenOnOffValue{&o.cpu_kernels, true}, "", "off: let XLA's CPU plugin compile every operation itself, without oneDNN"}
          .idle(without_xla(o)),
      Flag{"Machine", "--strict", &o.strict, "", "Fail when xla cannot do an operation, or when a step reads a value"}
          .idle(without_xla(o)),
      Flag{"Machine", "--detect-anomaly", &o.detect_anomaly, "", "Fail at the first NaN, and name its operation and layer (slow)"}
          .idle(without_xla(o)),
      Flag{"Machine", "--exact", &o.exact, "", "Never compute two operations as one where that could change a value (slow)"}
          .idle(without_xla(o)),
  };
}
// clang-format on

void check_machine(const TrainOptions& o) {
  const bool cpu = o.device == DeviceKind::kCpu;
  if (cpu && (o.devices > 1 || !o.device_ids.empty()))
    throw_error(Code::kInvalidArgument,
                base::str("--device cpu is LibTorch's own and has one replica: leave --devices and ",
                          "--device-ids out, or take --device xla"));
  if (!cpu && !o.plugin.empty() && o.plugin != "auto") {
    const auto found = pjrt::find_plugin(o.plugin, {});  // no folders: only checks the name or path
    if (!found && found.error().code() == Code::kInvalidArgument)
      throw_error(found.error().code(), found.error().what());
  }
  const auto placement = base::value_or_throw(replica::find_placement(base::environment));
  if (cpu && placement && placement->processes > 1)
    throw_error(Code::kInvalidArgument,
                base::str("--device cpu trains in one process, and ", placement->source, " started ",
                          placement->processes, ": take --device xla"));
}

}  // namespace sluice::train
