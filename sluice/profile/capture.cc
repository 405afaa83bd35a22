#include "sluice/profile/capture.h"

#include <zlib.h>

#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/file.h"
#include "sluice/base/log.h"
#include "sluice/base/strings.h"
#include "sluice/profile/chrome_trace.h"
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
  SLUICE_TRY(const std::string trace, gzip(chrome_trace_of(captured.recording, about.host, about.process)));
  SLUICE_OK(base::write_file_atomically(base::join_path(path, name + ".xplane.pb"),
                                        xspace_of(captured.recording, name) + captured.device));
  SLUICE_OK(base::write_file_atomically(base::join_path(path, name + ".trace.json.gz"), trace));
  About known = about;
  known.device_planes = !captured.device.empty();
  SLUICE_OK(
      base::write_file_atomically(base::join_path(path, name + ".txt"), in_words(captured.recording, known)));
  return path;
}

}  // namespace sluice::profile
