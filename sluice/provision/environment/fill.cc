#include "sluice/provision/environment/fill.h"

#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"
#include "sluice/provision/compute_slices.h"
#include "sluice/provision/environment/requests.h"
#include "sluice/provision/environment/resource.h"
#include "sluice/provision/slice_state.h"

namespace sluice::provision {
namespace {

using base::str;
using google::Done;
using google::Json;
using google::Kind;
using google::Outcome;
using google::Scope;

struct Report {
  int status = 0;
  std::string tail;
};

// Watches one machine until its script has ended.
class Watch {
 public:
  Watch(Cloud& cloud, const Settings& settings)
      : cloud_(cloud), settings_(settings), name_(prepare_name(settings.name)) {}

  Outcome<Report> until_over();

 private:
  Outcome<std::optional<Report>> attributes();
  Outcome<std::optional<Report>> serial();
  void progress(double since);

  Cloud& cloud_;
  const Settings& settings_;
  const std::string name_;
  double next_ = 0;  // next byte of the serial port to read
  std::string log_;  // the last lines of the serial port
  double said_ = 0;
};

Outcome<std::optional<Report>> Watch::attributes() {
  const auto items = cloud_.compute().guest_attributes(settings_.zone(), name_, "sluice/");
  if (!items && (items.error().kind == Kind::kNotFound || items.error().kind == Kind::kForbidden ||
                 items.error().kind == Kind::kInvalid))
    return std::optional<Report>();
  if (!items) return tl::unexpected<google::Failure>(items.error());
  std::optional<Report> report;
  std::string tail;
  for (const Json& item : *items) {
    const std::string key = google::text(item, "namespace") + "/" + google::text(item, "key");
    const std::string value = google::text(item, "value");
    if (key == kStatusAttribute) report = Report{base::number_of<int>(value).value_or(1), ""};
    if (key == kTailAttribute) tail = value;
  }
  if (report) report->tail = tail;
  return report;
}

Outcome<std::optional<Report>> Watch::serial() {
  const auto output = cloud_.compute().serial_output(settings_.zone(), name_, next_);
  if (!output && (output.error().kind == Kind::kNotFound || output.error().kind == Kind::kForbidden ||
                  output.error().kind == Kind::kInvalid || output.error().kind == Kind::kWrongState))
    return std::optional<Report>();
  if (!output) return tl::unexpected<google::Failure>(output.error());
  constexpr size_t kKept = 8192;
  log_ += google::text(*output, "contents");
  next_ = google::number(*output, "next");
  if (log_.size() > kKept) log_.erase(0, log_.size() - kKept);
  const size_t at = log_.rfind(kStatusLine);
  if (at == std::string::npos) return std::optional<Report>();
  const std::string rest = log_.substr(at + std::string(kStatusLine).size());
  const size_t end = rest.find_first_not_of("0123456789");
  if (end == std::string::npos) return std::optional<Report>();  // the line is not complete yet
  return std::optional<Report>(
      Report{base::number_of<int>(rest.substr(0, end)).value_or(1), log_.substr(0, at)});
}

void Watch::progress(double since) {
  const double now = cloud_.api->clock().now();
  if (now - said_ < 30) return;
  said_ = now;
  std::string last;
  for (const std::string& line : base::split(log_, '\n'))
    if (!base::trim(line).empty()) last = base::trim(line);
  cloud_.say(str("  the preparation script runs, ", static_cast<int>(now - since), " s",
                 last.empty() ? "" : ": " + last.substr(0, 120)));
}

Outcome<Report> Watch::until_over() {
  const double since = cloud_.api->clock().now();
  said_ = since;
  Pause pause(cloud_);
  while (true) {
    GOOGLE_TRY(auto report, attributes());
    if (!report) {
      GOOGLE_TRY(report, serial());
    }
    if (report) return *report;
    const auto machine = cloud_.compute().get(Scope::zone(settings_.zone()), "instances", name_);
    const bool gone = !machine && machine.error().kind == Kind::kNotFound;
    const std::string status = machine ? google::text(*machine, "status") : "";
    if (!machine && !gone) return tl::unexpected<google::Failure>(machine.error());
    if (gone || has_stopped(status)) return Report{-1, log_};
    if (cloud_.api->clock().now() - since > settings_.disk->timeout) return Report{-2, log_};
    progress(since);
    GOOGLE_OK(pause.next());
  }
}

std::string indented(const std::string& text) {
  std::string result;
  const auto lines = base::split(base::trim(text), '\n');
  constexpr size_t kLines = 20;
  for (size_t i = lines.size() > kLines ? lines.size() - kLines : 0; i < lines.size(); ++i)
    result += "\n    " + lines[i];
  return result;
}

tl::unexpected<google::Failure> script_failed(const Settings& settings, const Report& report) {
  const std::string how = report.status == -1   ? " has not ended: its machine stopped or was taken away"
                          : report.status == -2 ? " took longer than disk.timeout"
                                                : str(" ended with status ", report.status);
  return google::failed(
      Kind::kWrongState, Code::kFailedPrecondition, "the preparation script ", settings.disk->script->path,
      how, report.tail.empty() ? "" : "; its last lines:", indented(report.tail),
      "\nIts machine is deleted, the disk stays. Correct it and run the same again: it goes "
      "on from here");
}

// A machine is useless if it runs another script or has stopped.
bool useful(const Settings& settings, const Json& machine) {
  const auto labels = google::texts(machine, "labels");
  const auto script = labels.find(kScriptLabel);
  return script != labels.end() && script->second == script_label(settings);
}

Done label_filled(Cloud& cloud, const Settings& settings) {
  google::Compute compute = cloud.compute();
  const Scope zone = Scope::zone(settings.zone());
  const std::string name = disk_name(settings.name);
  if (cloud.api->dry_run()) {
    const Json labels = {{kDataLabel, "ready"}, {kScriptLabel, script_label(settings)}};
    const auto printed = compute.act(zone, "disks", name, "setLabels", {{"labels", labels}});
    return printed ? Done() : Done(tl::unexpected<google::Failure>(printed.error()));
  }
  const auto filled = [&] {
    const auto disk = compute.get(zone, "disks", name);
    return disk && google::text(*disk, str("labels.", kDataLabel)) == "ready";
  };
  return change(
      cloud, "the label of " + name,
      [&]() -> Outcome<google::Operation> {
        GOOGLE_TRY(const Json disk, compute.get(zone, "disks", name));
        google::Texts labels = google::texts(disk, "labels");
        labels[kDataLabel] = "ready";
        labels[kScriptLabel] = script_label(settings);
        return compute.set_labels(zone, "disks", name, labels, disk);
      },
      filled);
}

// For a disk that another apply filled: deletes the machine before sharing the disk.
Done finish_filled(Cloud& cloud, const Settings& settings, const Resource& machine) {
  GOOGLE_OK(unmake(cloud, settings.name, machine));
  return share_disk(cloud, settings);
}

// Returns whether the disk's label says that this script has filled it: another apply may have done so
// meanwhile.
bool is_filled(Cloud& cloud, const Settings& settings) {
  const auto disk = cloud.compute().get(Scope::zone(settings.zone()), "disks", disk_name(settings.name));
  return disk && google::text(*disk, str("labels.", kDataLabel)) == "ready" &&
         google::text(*disk, str("labels.", kScriptLabel)) == script_label(settings);
}

}  // namespace

Done fill_disk(Cloud& cloud, const Settings& settings, const Mark& mark) {
  const Resource machine = compute_resource(cloud, Scope::zone(settings.zone()), "instances",
                                            prepare_name(settings.name), prepare_body(settings, mark));
  if (!cloud.api->dry_run()) {
    if (is_filled(cloud, settings)) return finish_filled(cloud, settings, machine);
    const auto there = machine.look();
    if (there && !useful(settings, *there)) GOOGLE_OK(unmake(cloud, settings.name, machine));
  }
  if (const auto made = make(cloud, settings.name, machine); !made) {
    // This fails if another apply has filled the disk and machines read it.
    if (is_filled(cloud, settings)) return finish_filled(cloud, settings, machine);
    return tl::unexpected<google::Failure>(made.error());
  }
  if (cloud.api->dry_run()) {
    GOOGLE_OK(label_filled(cloud, settings));
    const auto printed = machine.remove();
    return share_disk(cloud, settings);
  }
  GOOGLE_TRY(const Report report, Watch(cloud, settings).until_over());
  // The first apply that sees the end of the script deletes the machine.
  if (report.status == -1 && is_filled(cloud, settings)) return finish_filled(cloud, settings, machine);
  if (report.status != 0) {
    GOOGLE_OK(unmake(cloud, settings.name, machine));
    return script_failed(settings, report);
  }
  // The label comes first: if this call is killed now, the next one does not fill the disk again.
  GOOGLE_OK(label_filled(cloud, settings));
  GOOGLE_OK(unmake(cloud, settings.name, machine));
  return share_disk(cloud, settings);
}

Done share_disk(Cloud& cloud, const Settings& settings) {
  if (!settings.disk || !disk_type(settings).starts_with("hyperdisk")) return {};
  google::Compute compute = cloud.compute();
  const Scope zone = Scope::zone(settings.zone());
  const std::string name = disk_name(settings.name);
  constexpr const char* kShared = "READ_ONLY_MANY";
  const auto shared = [&] {
    const auto disk = compute.get(zone, "disks", name);
    return disk && google::text(*disk, "accessMode") == kShared;
  };
  if (!cloud.api->dry_run() && shared()) return {};
  return change(
      cloud, "the access mode of " + name,
      [&] {
        return compute.patch(zone, "disks", name, {{"name", name}, {"accessMode", kShared}},
                             {{"paths", "accessMode"}});
      },
      shared);
}

}  // namespace sluice::provision
