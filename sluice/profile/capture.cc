#include "sluice/profile/capture.h"

#include <zlib.h>

#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/file.h"
#include "sluice/base/log.h"
#include "sluice/base/strings.h"
#include "sluice/profile/chrome_trace.h"
#include "sluice/profile/device_layers.h"
#include "sluice/profile/host_lines.h"
#include "sluice/profile/xspace.h"

namespace sluice::profile {
namespace {

base::Result<std::string> gzip(const std::string& text) {
  z_stream stream{};
  constexpr int kGzip = 16;  // added to the window's bits
  if (::deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return base::fail(Code::kResourceExhausted, "no memory to compress a trace of ", text.size(), " bytes");
  std::string out(::deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int done = ::deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  if (done != Z_STREAM_END)
    return base::fail(Code::kInternal, "zlib did not end the trace of ", text.size(), " bytes");
  return out;
}

base::Result<std::string> collect(pjrt::Profiler& profiler) {
  SLUICE_OK(profiler.stop());
  return profiler.collect();
}

base::Result<LayerTable> table_of(const Captured& captured, const Peaks& peaks) {
  const Steps steps = find_steps(captured.recording);
  if (steps.spans.empty()) return base::fail(Code::kNotFound, "no whole step is in the profile");
  if (!captured.device.empty())
    return layers_of_planes(captured.device, steps.count(), steps.nanoseconds() / steps.count());
  const auto& calls = captured.kernels.calls;
  if (calls.empty()) return base::fail(Code::kNotFound, "no library kernel was called");
  LayerTable table =
      layers_of(calls, find_programs(captured.recording), steps.begin(), steps.end(), steps.count());
  table.peaks = peaks;
  table.dropped = captured.kernels.dropped;
  return table;
}

}  // namespace

base::Result<Capture> Capture::start(std::shared_ptr<const pjrt::Plugin> plugin) {
  if (!base::start_spans())
    return base::fail(Code::kUnavailable,
                      "a profile of this process is being taken; try again when it is done");
  Capture capture;
  if (plugin == nullptr) return capture;
  auto profiler = pjrt::Profiler::of(std::move(plugin));
  if (!profiler) return capture;
  capture.profiler_.emplace(std::move(*profiler));
  if (const auto started = capture.profiler_->start(); !started) {
    base::warn("the devices are left out of the profile: ", started.error().what());
    capture.profiler_.reset();
  }
  return capture;
}

Capture::~Capture() {
  if (running_) base::stop_spans();
}

Captured Capture::stop() {
  Captured captured;
  running_ = false;
  captured.recording = base::stop_spans();
  captured.kernels = take_kernel_calls(captured.recording.begin);
  if (!profiler_) return captured;
  auto device = collect(*profiler_);
  if (device)
    captured.device = std::move(*device);
  else
    base::warn("the devices are left out of the profile: ", device.error().what());
  profiler_.reset();
  return captured;
}

std::string run_name(double wall_seconds) { return base::utc_time(wall_seconds, "%Y_%m_%d_%H_%M_%S"); }

base::Result<std::string> write(const Captured& captured, const About& about, const std::string& folder,
                                const std::string& run) {
  const std::string path = base::join_path(folder, base::str("plugins/profile/", run));
  const std::string name = about.processes > 1 ? base::str(about.host, "-", about.process) : about.host;
  SLUICE_OK(base::make_directories(path));
  base::SpanRecording shown = captured.recording;
  for (base::SpanLine& line : lines_of(captured.kernels)) shown.lines.push_back(std::move(line));
  const auto put = [&](const char* ending, std::string_view bytes) {
    return base::write_file_atomically(base::join_path(path, name + ending), bytes);
  };
  SLUICE_OK(put(".xplane.pb", xspace_of(shown, name) + captured.device));
  SLUICE_TRY(const std::string trace, gzip(chrome_trace_of(shown, about.host, about.process)));
  SLUICE_OK(put(".trace.json.gz", trace));
  About known = about;
  known.device_planes = !captured.device.empty();
  std::string layers;
  if (const auto table = table_of(captured, about.peaks)) {
    layers = layers_in_words(*table);
    SLUICE_OK(put(".layers.json", layers_as_json(*table)));
  } else if (known.device_planes) {
    layers = base::str("No table by layer: ", table.error().what(), "\n");
  }
  SLUICE_OK(put(".txt", in_words(captured.recording, known, layers)));
  return path;
}

}  // namespace sluice::profile
