#include "sluice/monitor/doctor/cloud_checks.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "sluice/base/clock.h"
#include "sluice/base/text/join.h"
#include "sluice/cloud/credentials/credentials.h"
#include "sluice/cloud/credentials/metadata.h"
#include "sluice/cloud/http.h"
#include "sluice/cloud/storage.h"

namespace sluice::monitor {
namespace {

using Level = Finding::Level;

constexpr char kLogin[] =
    "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a key file";

std::shared_ptr<cloud::Http> impatient_http() {
  cloud::HttpOptions options;
  options.connect_timeout = 3;
  options.stall_timeout = 5;
  options.retry = {0.2, 0.5, 2};
  return std::make_shared<cloud::Http>(options);
}

// Returns a value of the metadata server; "" if it has no such value.
std::string metadata_value(cloud::Http& http, const std::string& path) {
  const auto value = cloud::metadata(http, path);
  return value ? *value : "";
}

void check_clock(cloud::Http& http, const std::string& url, const std::string& of, const Report& report) {
  cloud::HttpRequest request;
  request.url = url;
  request.headers = {"Metadata-Flavor: Google"};
  request.total_timeout = 5;
  const double before = base::wall_seconds();
  const auto response = http.once(request);
  const auto date = response ? cloud::date_of(*response) : std::nullopt;
  if (!date) {
    report({Level::kNote, "clock", base::str("not compared: ", of, " said no date"),
            "compare it by hand: date -u"});
    return;
  }
  // The date has whole seconds, and the answer took a moment to arrive.
  const double now = (before + base::wall_seconds()) / 2, ahead = now - *date;
  report(clock_finding(ahead > 0 ? std::max(0.0, ahead - 1) : ahead, of));
}

// Reports the machine's place, and events that Google has scheduled for it.
void check_metadata(cloud::Http& http, const Report& report) {
  const auto zone = cloud::metadata(http, "instance/zone");
  if (!zone) {
    report({Level::kProblem, "metadata", zone.error().what(),
            "TPU programs ask it for the slice: in a container use --net host; else see that nothing blocks "
            "169.254.169.254"});
    return;
  }
  std::string found = zone->substr(zone->rfind('/') + 1);
  if (const std::string type = metadata_value(http, "instance/attributes/accelerator-type"); !type.empty())
    found += ", " + type;
  if (const std::string number = metadata_value(http, "instance/attributes/agent-worker-number");
      !number.empty())
    found += ", worker " + number;
  report({Level::kOk, "metadata", found, ""});
  if (metadata_value(http, "instance/preempted") == "TRUE")
    report({Level::kProblem, "metadata", "this machine is being preempted",
            "save a checkpoint, and continue on another machine"});
  const std::string event = metadata_value(http, "instance/maintenance-event");
  if (!event.empty() && event != "NONE")
    report(
        {Level::kNote, "metadata", "maintenance is about to begin: " + event, "save what must not be lost"});
}

void check_credentials(cloud::Credentials& credentials, bool needed, const Report& report) {
  if (credentials.anonymous()) {
    report({needed ? Level::kProblem : Level::kNote, "credentials", base::str("none: ", credentials.who()),
            kLogin});
    return;
  }
  const auto header = credentials.header();
  report(header ? Finding{Level::kOk, "credentials", credentials.who(), ""}
                : Finding{Level::kProblem, "credentials", header.error().what(), kLogin});
}

void check_rights(const cloud::Storage& storage, const std::string& bucket, const Report& report) {
  const auto granted = storage.granted(bucket, {"storage.objects.get", "storage.objects.list",
                                                "storage.objects.create", "storage.objects.delete"});
  if (!granted) {
    report({Level::kProblem, "bucket", granted.error().what(),
            "check the name, and who the program is to Google"});
    return;
  }
  const auto may = [&](const char* what) {
    return std::find(granted->begin(), granted->end(), base::str("storage.objects.", what)) != granted->end();
  };
  const std::string name = base::str("gs://", bucket, ": ");
  if (!may("get") || !may("list"))
    report(
        {Level::kProblem, "bucket", name + "it cannot be read",
         "give the account the role Storage Object Viewer (to read) or Storage Object User (to write too)"});
  else if (!may("create") || !may("delete"))
    report({Level::kNote, "bucket", name + "it can be read, and not written",
            "for logs and checkpoints there, give the account the role Storage Object User"});
  else
    report({Level::kOk, "bucket", name + "it can be read and written", ""});
}

void check_region(cloud::Http& http, const cloud::Storage& storage, const std::string& bucket,
                  const Report& report) {
  const auto region = cloud::own_region(http);
  const auto location = storage.location(bucket);
  if (!region || !location) return;  // outside Google's cloud, or without permission to ask
  const std::string found = base::str("gs://", bucket, " is in ", *location, ", this machine in ", *region);
  if (cloud::is_near(*region, *location))
    report({Level::kOk, "bucket", found, ""});
  else
    report({Level::kProblem, "bucket", found,
            base::str("reading from another region is slower and costs money for each byte: use a bucket in ",
                      *region)});
}

}  // namespace

Finding clock_finding(double ahead, const std::string& of) {
  const std::string found = base::str("the clock is ", std::lround(std::abs(ahead)), " s ",
                                      ahead < 0 ? "behind " : "ahead of ", of);
  const char* advice = "set it: sudo timedatectl set-ntp true";
  if (std::abs(ahead) > 120)
    return {Level::kProblem, "clock", found,
            base::str(advice, "; signed requests and certificates are refused")};
  if (std::abs(ahead) > 5) return {Level::kNote, "clock", found, advice};
  return {Level::kOk, "clock", base::str("the clock agrees with ", of), ""};
}

void check_cloud(const std::vector<std::string>& buckets, const Report& report) {
  const auto http = impatient_http();
  const bool on_cloud = cloud::on_google_cloud(*http);
  if (on_cloud) {
    check_metadata(*http, report);
    check_clock(*http, cloud::metadata_address(""), "the metadata server", report);
  } else {
    report({Level::kOk, "metadata", "this machine is not in Google's cloud", ""});
  }
  const auto storage = cloud::Storage::of_environment(http);
  if (!storage) {
    report({Level::kProblem, "credentials", storage.error().what(), kLogin});
    return;
  }
  const cloud::Access& access = (*storage)->access();
  // An emulator needs no credentials.
  if (!access.direct) check_credentials(*access.credentials, /*needed=*/!buckets.empty(), report);
  if (!on_cloud && !buckets.empty()) check_clock(*http, (*storage)->endpoint(), "Cloud Storage", report);
  for (const std::string& bucket : buckets) {
    check_rights(**storage, bucket, report);
    check_region(*http, **storage, bucket, report);
  }
}

}  // namespace sluice::monitor
