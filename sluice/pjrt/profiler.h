// A plugin's own profiler, which records its devices' work as an XSpace (the message that TensorFlow's and
// JAX's tools read).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sluice/base/result.h"
#include "sluice/pjrt/plugin.h"

namespace sluice::pjrt {

namespace c {
struct PLUGIN_Profiler_Api;
struct PLUGIN_Profiler;
}  // namespace c

// One run of the profiler, from start() to its destruction. A plugin runs one at a time. Threads: one.
class Profiler {
 public:
  // Returns nullopt if the plugin has no profiler, as XLA's CPU plugin. TPU and CUDA have one.
  static std::optional<Profiler> of(std::shared_ptr<const Plugin> plugin);
  Profiler(Profiler&& other) noexcept;
  Profiler& operator=(Profiler&&) = delete;
  ~Profiler();

  base::Status start();
  base::Status stop();
  // After stop(): returns a serialised XSpace, which may be empty.
  base::Result<std::string> collect();

 private:
  Profiler(std::shared_ptr<const Plugin> plugin, const c::PLUGIN_Profiler_Api* api)
      : plugin_(std::move(plugin)), api_(api) {}

  std::shared_ptr<const Plugin> plugin_;
  const c::PLUGIN_Profiler_Api* api_;
  c::PLUGIN_Profiler* profiler_ = nullptr;
};

// Whether these bytes are exactly a sequence of whole fields of a message.
bool is_message(std::string_view bytes);

}  // namespace sluice::pjrt
