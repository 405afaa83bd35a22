#include "sluice/profile/capture.h"

#include <zlib.h>

#include <cstring>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/cloud/store.h"
#include "sluice/profile/chrome_trace.h"
#include "sluice/profile/device_layers.h"
#include "sluice/profile/host_lines.h"
#include "sluice/profile/xspace.h"

namespace sluice::profile {
namespace {

base::Result<std::string> gzip(const std::string& text) {
  z_stream stream{};
  constexpr int kGzip = 16;  // added to the window bits for gzip
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

// The training thread is the one with the steps, even if another thread started the recording.
int64_t find_main_thread(const base::SpanRecording& recording) {
  for (const base::SpanLine& line : recording.lines)
    for (const base::SpanRecord& span : line.spans)
      if (line.is_thread && std::strcmp(span.name, kStepSpan) == 0) return line.id;
  return recording.main_thread;
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
  captured.recording.main_thread = find_main_thread(captured.recording);
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

std::string file_name(const std::string& host, int process, int processes) {
  return processes > 1 ? base::str(host, "-", process) : host;
}

std::string run_folder(const std::string& folder, const std::string& run) {
  return base::join_path(folder, base::str("plugins/profile/", run));
}

base::Result<std::vector<ProfileFile>> files_of(const Captured& captured, const About& about) {
  const std::string name = file_name(about.host, about.process, about.processes);
  base::SpanRecording shown = captured.recording;
  for (base::SpanLine& line : lines_of(captured.kernels)) shown.lines.push_back(std::move(line));
  SLUICE_TRY(std::string trace, gzip(chrome_trace_of(shown, about.host, about.process)));
  std::vector<ProfileFile> files = {{"xplane.pb", xspace_of(shown, name) + captured.device},
                                    {"trace.json.gz", std::move(trace)}};
  About known = about;
  known.device_planes = !captured.device.empty();
  std::string layers;
  if (const auto table = table_of(captured, about.peaks)) {
    layers = layers_in_words(*table);
    files.push_back({"layers.json", layers_as_json(*table)});
  } else if (known.device_planes) {
    layers = base::str("No table by layer: ", table.error().what(), "\n");
  }
  files.push_back({"txt", in_words(captured.recording, known, layers)});
  return files;
}

base::Status save(const std::string& bytes, const std::string& place) {
  if (!cloud::is_object_url(place)) {
    SLUICE_OK(base::make_directories(base::parent_path(place)));
    return base::write_file_atomically(place, bytes);
  }
  SLUICE_TRY(const cloud::ObjectName name, cloud::parse_object_url(place));
  SLUICE_TRY(const cloud::Store* store, cloud::store_to_write(name));
  SLUICE_TRY([[maybe_unused]] const auto facts, store->upload_text(bytes, name));
  return {};
}

base::Result<std::string> write(const Captured& captured, const About& about, const std::string& folder,
                                const std::string& run) {
  const std::string path = run_folder(folder, run),
                    name = file_name(about.host, about.process, about.processes);
  SLUICE_TRY(const auto files, files_of(captured, about));
  for (const ProfileFile& file : files)
    SLUICE_OK(save(file.bytes, base::str(path, "/", name, ".", file.ending)));
  return path;
}

}  // namespace sluice::profile
