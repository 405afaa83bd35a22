#include "sluice/train/tracking/mlflow_server.h"

#include <cctype>
#include <nlohmann/json.hpp>

#include "sluice/base/environment.h"
#include "sluice/base/formats/base64.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/credentials/token_request.h"

namespace sluice::train {
namespace mlflow_server_detail {

using Json = nlohmann::json;

// Returns a text of an object within an object; "" if it is not there.
std::string text_at(const Json& json, const char* outer, const char* name) {
  const auto object = json.find(outer);
  if (object == json.end() || !object->is_object()) return "";
  const auto text = object->find(name);
  return text != object->end() && text->is_string() ? text->get<std::string>() : "";
}

base::Result<std::string> needed(std::string text, const std::string& what, const char* name) {
  if (text.empty())
    return base::fail(Code::kDataLoss, what, ": the answer has no ", name, ": is this MLflow?");
  return text;
}

Json list_of(const MlflowTexts& texts) {
  Json list = Json::array();
  for (const auto& [key, value] : texts) list.push_back({{"key", key}, {"value", value}});
  return list;
}

std::string without_slashes(std::string uri) {
  while (base::ends_with(uri, "/")) uri.pop_back();
  return uri;
}

// Returns the code of MLflow's error, {"error_code": "…", "message": "…"}; "" for another answer.
std::string error_code(const cloud::HttpResponse& response) {
  const Json json = base::parse_json(response.body);
  if (!json.is_object() || !json.contains("error_code") || !json["error_code"].is_string()) return "";
  return json["error_code"].get<std::string>();
}

std::string message_of(const cloud::HttpResponse& response) {
  const Json json = base::parse_json(response.body);
  if (!json.is_object() || !json.contains("message") || !json["message"].is_string()) return "";
  return cut_text(json["message"].get<std::string>(), 300);
}

}  // namespace mlflow_server_detail

std::string cut_text(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end));
}

std::string mlflow_name(std::string_view name) {
  std::string plain(name.substr(0, kMlflowNameBytes));
  for (char& c : plain) {
    const auto byte = static_cast<unsigned char>(c);
    const bool fits = byte < 0x80 && (std::isalnum(byte) != 0 ||
                                      std::string_view("_-. :/").find(c) != std::string_view::npos);
    if (!fits) c = '_';
  }
  // MLflow reads names as file paths, which must be in their simplest form.
  std::vector<std::string> parts = base::split(plain, '/');
  for (std::string& part : parts)
    if (part.empty() || part == "." || part == "..") part.assign(std::max<std::size_t>(part.size(), 1), '_');
  return cut_text(base::join(parts, "/"), kMlflowNameBytes);
}

base::Status check_mlflow_uri(const std::string& uri) {
  const bool secure = base::starts_with(uri, "https://");
  const auto refuse = [&](const char* why) {
    return base::fail(Code::kInvalidArgument, "--mlflow ", uri, ": ", why);
  };
  if (!secure && !base::starts_with(uri, "http://"))
    return refuse("expected a tracking server, such as http://127.0.0.1:5000 or https://mlflow.example.org");
  const std::string rest = uri.substr(secure ? 8 : 7);
  const std::string host = rest.substr(0, rest.find('/'));
  if (host.find('@') != std::string::npos)
    return base::fail(
        Code::kInvalidArgument,
        "--mlflow: the address has a name or a password in it, which checkpoints would keep: give "
        "them in MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD");
  if (host.empty() || host[0] == ':' || uri.find_first_of(" ?#") != std::string::npos)
    return refuse("expected http(s)://HOST[:PORT][/PATH]");
  return {};
}

std::string mlflow_authorization() {
  if (const auto token = base::environment("MLFLOW_TRACKING_TOKEN")) return "Bearer " + *token;
  const auto name = base::environment("MLFLOW_TRACKING_USERNAME");
  if (!name) return "";
  const std::string both = *name + ":" + base::environment("MLFLOW_TRACKING_PASSWORD").value_or("");
  return "Basic " + base::base64(both);
}

base::Status check_mlflow_secret(const std::string& uri, const std::string& authorization) {
  if (authorization.empty()) return {};
  return cloud::may_send_secret(uri, {base::starts_with(authorization, "Bearer ")
                                          ? "MLFLOW_TRACKING_TOKEN"
                                          : "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD",
                                      "--mlflow or MLFLOW_TRACKING_URI"});
}

MlflowServer::MlflowServer(const std::string& uri, std::string authorization,
                           const std::atomic<bool>& cancelled, const MlflowLimits& limits)
    : http_({.connect_timeout = limits.connect, .stall_timeout = limits.request, .retry = {}}),
      root_(mlflow_server_detail::without_slashes(uri) + "/api/2.0/mlflow/"),
      authorization_(std::move(authorization)),
      cancelled_(cancelled),
      limits_(limits) {}

base::Result<nlohmann::json> MlflowServer::ask(const std::string& method, const std::string& path,
                                               const std::string& query, const nlohmann::json& body) {
  namespace detail = mlflow_server_detail;
  const std::string text =
      method == "GET" ? "" : body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::string what = method + " " + root_ + path;
  cloud::HttpRequest request{.method = method, .url = root_ + path + query};
  if (!text.empty()) request.headers.push_back("Content-Type: application/json");
  if (!authorization_.empty()) request.headers.push_back("Authorization: " + authorization_);
  request.body = text;
  request.total_timeout = limits_.request;
  request.cancelled = &cancelled_;
  const auto answer = http_.once(request);
  if (!answer) return tl::unexpected<Error>(answer.error());  // the error names the request
  const cloud::HttpResponse& response = *answer;
  if (response.status < 200 || response.status >= 300) {
    const Code code = detail::error_code(response) == "RESOURCE_ALREADY_EXISTS"
                          ? Code::kAlreadyExists
                          : cloud::status_error(response, what).code();
    const std::string words = detail::message_of(response);
    return base::fail(code == Code::kUnknown ? Code::kInvalidArgument : code, what,
                      ": the server answered with status ", response.status,
                      words.empty() ? ", and not in MLflow's words: is the address right?" : ": " + words);
  }
  nlohmann::json json = base::parse_json(response.body);
  if (!json.is_object())
    return base::fail(Code::kNotFound, what,
                      ": the answer is not a JSON object: is this the address of MLflow?");
  return json;
}

base::Result<nlohmann::json> MlflowServer::post(const std::string& path, const nlohmann::json& body) {
  return ask("POST", path, "", body);
}

base::Result<std::string> MlflowServer::experiment(const std::string& name) {
  namespace detail = mlflow_server_detail;
  const std::string query = "?experiment_name=" + cloud::percent_encode(name);
  const auto look = [&]() -> base::Result<std::string> {
    SLUICE_TRY(const auto found, ask("GET", "experiments/get-by-name", query, {}));
    if (detail::text_at(found, "experiment", "lifecycle_stage") == "deleted")
      return base::fail(Code::kFailedPrecondition, "the experiment '", name,
                        "' is deleted: restore it, or choose another one with --mlflow-experiment");
    return detail::needed(detail::text_at(found, "experiment", "experiment_id"), root_, "experiment_id");
  };
  auto found = look();
  // A server of another kind also answers 404; then the next request fails.
  if (found || found.error().code() != Code::kNotFound) return found;
  auto made = post("experiments/create", {{"name", name}});
  if (!made && made.error().code() == Code::kAlreadyExists) return look();  // another run created it first
  if (!made) return tl::unexpected<Error>(made.error());
  const auto id = made->find("experiment_id");
  return detail::needed(id != made->end() && id->is_string() ? id->get<std::string>() : "", root_,
                        "experiment_id");
}

base::Result<std::string> MlflowServer::create_run(const std::string& experiment, const std::string& name,
                                                   int64_t began, const MlflowTexts& tags) {
  namespace detail = mlflow_server_detail;
  SLUICE_TRY(const auto made, post("runs/create", {{"experiment_id", experiment},
                                                   {"run_name", name},
                                                   {"start_time", began},
                                                   {"tags", detail::list_of(tags)}}));
  const auto run = made.find("run");
  return detail::needed(run == made.end() ? "" : detail::text_at(*run, "info", "run_id"), root_, "run_id");
}

base::Result<std::string> MlflowServer::find_run(const std::string& experiment, const std::string& tag,
                                                 const std::string& value) {
  SLUICE_TRY(const auto found, post("runs/search", {{"experiment_ids", {experiment}},
                                                    {"filter", base::str("tags.`", tag, "` = '", value, "'")},
                                                    {"max_results", 1}}));
  const auto runs = found.find("runs");
  if (runs == found.end() || !runs->is_array() || runs->empty()) return std::string();
  return mlflow_server_detail::text_at(runs->front(), "info", "run_id");
}

base::Status MlflowServer::check_run(const std::string& run) {
  SLUICE_TRY(const auto found, ask("GET", "runs/get", "?run_id=" + cloud::percent_encode(run), {}));
  const auto facts = found.find("run");
  if (facts == found.end() || mlflow_server_detail::text_at(*facts, "info", "lifecycle_stage") == "deleted")
    return base::fail(Code::kNotFound, "the run ", run, " is deleted");
  return {};
}

base::Status MlflowServer::log_batch(const std::string& run, const nlohmann::json& batch) {
  nlohmann::json body = batch;
  body["run_id"] = run;
  SLUICE_TRY([[maybe_unused]] const auto answer, post("runs/log-batch", body));
  return {};
}

base::Status MlflowServer::update_run(const std::string& run, const std::string& status, int64_t at) {
  nlohmann::json body = {{"run_id", run}, {"status", status}};
  if (status != "RUNNING") body["end_time"] = at;
  SLUICE_TRY([[maybe_unused]] const auto answer, post("runs/update", body));
  return {};
}

}  // namespace sluice::train
