#include "sluice/cloud/stores/azure_signer.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/files/secret.h"
#include "sluice/base/formats/base64.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/lower_case.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/checksum.h"
#include "sluice/cloud/credentials/token_request.h"
#include "sluice/cloud/stores/rest.h"

namespace sluice::cloud {
namespace {

constexpr char kVersion[] = "x-ms-version: 2021-12-02";
constexpr char kScope[] = "https://storage.azure.com/";

// The published account and key of every emulator.
constexpr char kEmulatorAccount[] = "devstoreaccount1";
constexpr char kEmulatorKey[] =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

// Returns the value of a name in "AccountName=x;AccountKey=y==;BlobEndpoint=http://…", ignoring case.
std::string connection_value(const std::string& text, const std::string& name) {
  for (const std::string& part : base::split(text, ';')) {
    const std::size_t equals = part.find('=');
    if (equals != std::string::npos &&
        base::lower_case(base::trim(part.substr(0, equals))) == base::lower_case(name))
      return std::string(base::trim(part.substr(equals + 1)));
  }
  return "";
}

std::string without_question_mark(std::string text) {
  if (base::starts_with(text, "?")) text.erase(0, 1);
  return text;
}

// `expires_in` may be a number, or a text with one.
base::Result<Token> token_of(const HttpResponse& response, const std::string& who) {
  SLUICE_TRY(Token token, parse_token(response.body, who));
  const auto json = base::parse_json(response.body);
  token.seconds = base::number_of<double>(text_field(json, "expires_in")).value_or(token.seconds);
  return token;
}

CredentialFacts azure_hosts() {
  CredentialFacts facts;
  facts.universe = "core.windows.net";
  return facts;
}

// Returns credentials of an application of Microsoft Entra, by its secret or by a token of a pod.
std::shared_ptr<Credentials> of_application(const std::shared_ptr<Http>& http) {
  const auto tenant = base::environment("AZURE_TENANT_ID"), client = base::environment("AZURE_CLIENT_ID");
  const auto secret = base::environment("AZURE_CLIENT_SECRET"),
             file = base::environment("AZURE_FEDERATED_TOKEN_FILE");
  if (!tenant || !client || (!secret && !file)) return nullptr;
  std::string host = base::environment("AZURE_AUTHORITY_HOST").value_or("https://login.microsoftonline.com");
  while (base::ends_with(host, "/")) host.pop_back();
  const std::string who = "the application " + *client;
  const auto fetch = [=]() -> base::Result<Token> {
    std::string form = "grant_type=client_credentials&client_id=" + percent_encode(*client) +
                       "&scope=" + percent_encode(std::string(kScope) + ".default");
    if (secret) {
      form += "&client_secret=" + percent_encode(*secret);
    } else {
      SLUICE_TRY(const std::string assertion, base::read_file(*file));
      form +=
          "&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&client_"
          "assertion=" +
          percent_encode(base::trim(assertion));
    }
    return post_for_token(
        *http, host + "/" + percent_encode(*tenant) + "/oauth2/v2.0/token", form, {}, who,
        "check AZURE_TENANT_ID, AZURE_CLIENT_ID and its secret",
        {secret ? "AZURE_CLIENT_SECRET" : "the token in AZURE_FEDERATED_TOKEN_FILE", "AZURE_AUTHORITY_HOST"});
  };
  return std::make_shared<Credentials>(who, fetch, http->options().clock, azure_hosts());
}

// Returns credentials of the machine's identity, or of an app's ($IDENTITY_ENDPOINT).
base::Result<std::shared_ptr<Credentials>> of_managed_identity(const std::shared_ptr<Http>& http) {
  const auto endpoint = base::environment("IDENTITY_ENDPOINT"), secret = base::environment("IDENTITY_HEADER");
  const auto client = base::environment("AZURE_CLIENT_ID");
  const bool app = endpoint && secret;
  HttpRequest request;
  request.url = (app ? *endpoint + "?api-version=2019-08-01"
                     : "http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01") +
                "&resource=" + percent_encode(kScope) +
                (client ? "&client_id=" + percent_encode(*client) : "");
  request.headers = {app ? "X-IDENTITY-HEADER: " + *secret : "Metadata: true"};
  if (app) request.secret = {"IDENTITY_HEADER", "IDENTITY_ENDPOINT", "", /*to_agent=*/true};
  request.direct = true;
  request.total_timeout = 2;
  const auto first = http->once(request);
  if (!first && first.error().code() == Code::kPermissionDenied) return tl::unexpected<Error>(first.error());
  if (!first || first->status != 200 || !parse_token(first->body, "")) return nullptr;
  const std::string who = "this machine's managed identity";
  request.total_timeout = 0;
  const auto fetch = [=]() -> base::Result<Token> {
    SLUICE_TRY(const auto response, http->send(request, "a token of " + who));
    if (response.status != 200) return token_refused(response, who, "check its roles");
    return token_of(response, who);
  };
  return std::make_shared<Credentials>(who, fetch, http->options().clock, azure_hosts());
}

std::string now_as_date(std::time_t now) {
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[64];
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc);
  return text;
}

}  // namespace

base::Status sign_for_azure(HttpRequest& request, const std::string& account, const std::string& key,
                            std::time_t now) {
  const auto secret = base::bytes_of_base64(key);
  if (!secret)
    return base::fail(
        Code::kInvalidArgument, "the key of the account ", account,
        " is not base64: copy it again (AZURE_STORAGE_KEY, or AccountKey of the connection string)");

  request.headers.push_back("x-ms-date: " + now_as_date(now));
  request.headers.emplace_back(kVersion);
  std::map<std::string, std::string> headers;
  for (const std::string& header : request.headers) {
    const std::size_t colon = header.find(':');
    headers[base::lower_case(header.substr(0, colon))] =
        base::trim(std::string_view(header).substr(colon + 1));
  }
  std::string text = request.method + "\n";
  for (const char* name :
       {"content-encoding", "content-language", "content-length", "content-md5", "content-type", "date",
        "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"}) {
    const bool length = std::string_view(name) == "content-length";
    text +=
        (length ? (request.body.empty() ? "" : std::to_string(request.body.size())) : headers[name]) + "\n";
  }
  for (const auto& [name, value] : headers)
    if (base::starts_with(name, "x-ms-")) text += name + ":" + value + "\n";
  const std::size_t host = request.url.find("://") + 3,
                    query = std::min(request.url.find('?'), request.url.size());
  const std::size_t path = std::min(request.url.find('/', host), query);
  text += "/" + account + request.url.substr(path, query - path);
  std::map<std::string, std::string> parameters;
  if (query < request.url.size())
    for (const std::string& part : base::split(request.url.substr(query + 1), '&')) {
      const std::size_t equals = std::min(part.find('='), part.size());
      parameters[base::lower_case(percent_decode(part.substr(0, equals)))] =
          equals < part.size() ? percent_decode(part.substr(equals + 1)) : "";
    }
  for (const auto& [name, value] : parameters) text += "\n" + name + ":" + value;
  request.headers.push_back("Authorization: SharedKey " + account + ":" +
                            base::base64(base::hmac_sha256(*secret, text)));
  return {};
}

std::string AzureSettings::place_of(const std::string& account_name) const {
  return endpoint.empty() ? base::str("https://", percent_encode(account_name), ".blob.", suffix) : endpoint;
}

base::Result<AzureSettings> azure_settings_of_environment(std::shared_ptr<Http> http) {
  AzureSettings settings;
  const std::string connection = base::environment("AZURE_STORAGE_CONNECTION_STRING").value_or("");
  settings.account = base::environment("AZURE_STORAGE_ACCOUNT").value_or("");
  settings.endpoint = base::environment("AZURE_STORAGE_SERVICE_ENDPOINT").value_or("");
  settings.endpoint_from = "AZURE_STORAGE_SERVICE_ENDPOINT";
  std::string endpoint_setting = settings.endpoint_from;
  settings.sas = without_question_mark(base::environment("AZURE_STORAGE_SAS_TOKEN").value_or(""));
  settings.key = base::environment("AZURE_STORAGE_KEY").value_or("");
  settings.secret_from = settings.sas.empty() ? "AZURE_STORAGE_KEY" : "AZURE_STORAGE_SAS_TOKEN";
  if (!connection.empty()) {
    settings.account = connection_value(connection, "AccountName");
    settings.key = connection_value(connection, "AccountKey");
    settings.sas = without_question_mark(connection_value(connection, "SharedAccessSignature"));
    settings.endpoint = connection_value(connection, "BlobEndpoint");
    settings.secret_from = "AZURE_STORAGE_CONNECTION_STRING";
    settings.endpoint_from = "its BlobEndpoint";
    endpoint_setting = "BlobEndpoint of AZURE_STORAGE_CONNECTION_STRING";
    if (const std::string suffix = connection_value(connection, "EndpointSuffix"); !suffix.empty())
      settings.suffix = suffix;
    if (connection_value(connection, "UseDevelopmentStorage") == "true") {
      std::string proxy = connection_value(connection, "DevelopmentStorageProxyUri");
      while (base::ends_with(proxy, "/")) proxy.pop_back();
      settings.account = kEmulatorAccount;
      settings.key = kEmulatorKey;
      settings.endpoint = base::str(proxy.empty() ? "http://127.0.0.1" : proxy, ":10000/", kEmulatorAccount);
      settings.endpoint_from = "its DevelopmentStorageProxyUri";
      endpoint_setting = "DevelopmentStorageProxyUri of AZURE_STORAGE_CONNECTION_STRING";
    }
    if (settings.key.empty() && settings.sas.empty())
      return base::fail(
          Code::kInvalidArgument,
          "AZURE_STORAGE_CONNECTION_STRING has neither AccountKey nor SharedAccessSignature: copy it "
          "again from the account's access keys, or use UseDevelopmentStorage=true for an emulator here");
  }
  SLUICE_OK(check_endpoint(settings.endpoint, endpoint_setting));
  while (base::ends_with(settings.endpoint, "/")) settings.endpoint.pop_back();
  if (!settings.key.empty() || !settings.sas.empty()) return settings;
  settings.tokens = of_application(http);
  if (settings.tokens == nullptr) {
    SLUICE_TRY(settings.tokens, of_managed_identity(http));
  }
  settings.looked_in =
      "AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_SAS_TOKEN, AZURE_STORAGE_KEY, AZURE_CLIENT_ID with its "
      "secret, or the "
      "machine's managed identity";
  return settings;
}

base::Result<HttpResponse> AzureSigner::once(Http& http, HttpRequest request) {
  request.exact_path = true;
  const std::string kind =
      settings_.sas.empty() ? "what is signed with the key" : "the shared access signature";
  if (ours() && !(settings_.sas + settings_.key).empty())
    request.secret = {kind + " of " + settings_.secret_from, settings_.endpoint_from};
  if (ours() && !settings_.sas.empty()) {
    request.headers.emplace_back(kVersion);
    request.url += (request.url.find('?') == std::string::npos ? "?" : "&") + settings_.sas;
    return http.once(request);
  }
  if (ours() && !settings_.key.empty()) {
    SLUICE_OK(sign_for_azure(request, account_, settings_.key, std::time(nullptr)));
    return http.once(request);
  }
  request.headers.emplace_back(kVersion);
  if (settings_.tokens == nullptr) return http.once(request);
  Access access;
  access.http = std::shared_ptr<Http>(std::shared_ptr<Http>(), &http);
  access.credentials = settings_.tokens;
  return access.once(std::move(request));
}

std::string AzureSigner::who() const {
  if (!ours())
    return base::str("nobody: the credentials of the environment are the account ", settings_.account,
                     "'s (AZURE_STORAGE_ACCOUNT), not ", account_, "'s");
  if (!settings_.sas.empty()) return "a shared access signature";
  if (!settings_.key.empty()) return "the key of the account " + account_;
  if (settings_.tokens != nullptr) return settings_.tokens->who();
  return "nobody: there are no credentials in " + settings_.looked_in;
}

Error AzureSigner::explain(const HttpResponse& response, const std::string& what) const {
  HttpResponse named = response;
  // The answer to HEAD has the code only in a header.
  const std::string code = response.header("x-ms-error-code").value_or(service_error(response.body).code);
  if (response.body.empty()) named.body = code;
  Error error = service_status_error(named, what);
  // A PUT with a condition answers 409 where 412 is meant.
  if (code == "BlobAlreadyExists") error = Error(Code::kFailedPrecondition, error.what());
  if (error.code() == Code::kNotFound)
    return Error(error.code(), std::string(error.what()) + " (no such blob or container)");
  if (error.code() != Code::kPermissionDenied) return error;
  std::string advice = ". The request was made by " + who();
  if (code == "AuthenticationFailed")
    advice += ": the key or the signature is wrong, has expired, or this machine's clock is (it says " +
              now_as_date(std::time(nullptr)) + ")";
  else
    advice += ": it needs the role Storage Blob Data Reader (to read) or Contributor (to write)";
  return Error(error.code(), error.what() + advice);
}

}  // namespace sluice::cloud
