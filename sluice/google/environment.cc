// The settings for Google in the environment: endpoint, credentials and project.
#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/credentials/metadata.h"
#include "sluice/google/api.h"

namespace sluice::google {
namespace {

std::string gcloud_folder() {
  const auto folder = base::environment("CLOUDSDK_CONFIG");
  return folder ? *folder : base::expand_home("~/.config/gcloud");
}

// Returns `project` of [core] in gcloud's active configuration; "" if it is not set.
std::string gcloud_project() {
  const auto active = base::read_file(base::join_path(gcloud_folder(), "active_config"));
  const std::string name = active ? std::string(base::trim(*active)) : "default";
  const auto text = base::read_file(base::join_path(gcloud_folder(), "configurations/config_" + name));
  if (!text) return "";
  std::string section;
  for (const std::string& raw : base::split(*text, '\n')) {
    const std::string line(base::trim(raw));
    if (base::starts_with(line, "[")) section = line;
    const auto equals = line.find('=');
    if (section == "[core]" && equals != std::string::npos && base::trim(line.substr(0, equals)) == "project")
      return std::string(base::trim(line.substr(equals + 1)));
  }
  return "";
}

Json credentials_json() {
  const auto named = base::environment("GOOGLE_APPLICATION_CREDENTIALS");
  const auto text = base::read_file(
      named ? *named : base::join_path(gcloud_folder(), "application_default_credentials.json"));
  return text ? base::parse_json(*text) : Json();
}

}  // namespace

base::Result<ApiOptions> api_options_of_environment() {
  ApiOptions options;
  SLUICE_TRY(options.http.retry, cloud::retry_policy_of_environment());
  const auto token = base::environment("SLUICE_GOOGLE_TOKEN");
  SLUICE_TRY(options.endpoint, cloud::google_endpoint_of_environment());
  if (!options.endpoint.empty()) options.credentials = cloud::anonymous_credentials();
  if (token) {
    const std::string value = *token;
    options.credentials = std::make_shared<cloud::Credentials>("the token of SLUICE_GOOGLE_TOKEN",
                                                               [value]() -> base::Result<cloud::Token> {
                                                                 return cloud::Token{value, 3600};
                                                               });
  }
  return options;
}

base::Result<std::string> default_project() {
  for (const char* name : {"SLUICE_GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT"})
    if (const auto project = base::environment(name)) return *project;
  if (const std::string project = gcloud_project(); !project.empty()) return project;
  const Json credentials = credentials_json();
  for (const char* name : {"project_id", "quota_project_id"})
    if (const std::string project = text(credentials, name); !project.empty()) return project;
  cloud::Http http;
  if (cloud::on_google_cloud(http)) return cloud::metadata(http, "project/project-id");
  return base::fail(Code::kInvalidArgument,
                    "no project: give --project, set SLUICE_GOOGLE_PROJECT, or gcloud config set project P "
                    "(looked in SLUICE_GOOGLE_PROJECT, GOOGLE_CLOUD_PROJECT, CLOUDSDK_CORE_PROJECT, ",
                    gcloud_folder(), " and the credentials' file)");
}

}  // namespace sluice::google
