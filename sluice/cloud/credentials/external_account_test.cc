// Credentials that are exchanged for others, and where a secret may be sent.
#include <nlohmann/json.hpp>

#include "sluice/base/files/file.h"
#include "sluice/cloud/credentials/token_request.h"
#include "sluice/cloud/storage.h"
#include "sluice/cloud/test_support.h"
#include "sluice/cloud/upload.h"

namespace sluice::cloud {
namespace {

using nlohmann::json;
using test::Environment;
using test::Reply;
using test::Request;
using test::Server;

constexpr char kAccount[] = "/v1/projects/-/serviceAccounts/trainer@p.iam:generateAccessToken";

base::Result<std::shared_ptr<Credentials>> of(const json& file) {
  return credentials_of_json(std::make_shared<Http>(), "adc.json", file.dump());
}

std::string header_of(const base::Result<std::shared_ptr<Credentials>>& found) {
  if (!found) return found.error().what();
  const auto header = (*found)->header();
  return header ? *header : header.error().what();
}

std::string error_of(const json& file) {
  const auto found = of(file);
  return found ? "none" : found.error().what();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Google's token services and another provider's, in one server.
class Exchange : public testing::Test {
 protected:
  Reply answer(const Request& request) {
    const std::lock_guard lock(mutex_);
    seen_[request.path] = request;
    if (request.path == "/sts") return {200, {}, R"({"access_token":"federated","expires_in":3600})"};
    if (request.path == "/token") return {200, {}, R"({"access_token":"users","expires_in":3600})"};
    if (request.path == "/subject") return {200, {}, R"({"id":{"x":1},"value":"from a url"})"};
    if (request.path == kAccount && !refuse_.empty()) return {403, {}, refuse_};
    if (request.path == kAccount)
      return {200, {}, R"({"accessToken":"accounts","expireTime":"2999-01-01T00:00:00Z"})"};
    return {404, {}, "{}"};
  }

  std::string form(const std::string& name) { return Request{"", "", seen("/sts").body}.parameter(name); }
  Request seen(const std::string& path) {
    const std::lock_guard lock(mutex_);
    return seen_[path];
  }

  json file() {
    base::value_or_throw(base::write_file_atomically(folder_.path("subject"), "from a file\n"));
    return {
        {"type", "external_account"},
        {"audience", "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q"},
        {"subject_token_type", "urn:ietf:params:oauth:token-type:jwt"},
        {"token_url", server_.address() + "/sts"},
        {"credential_source", {{"file", folder_.path("subject")}}}};
  }

  json impersonated() {
    return {{"type", "impersonated_service_account"},
            {"service_account_impersonation_url", server_.address() + kAccount},
            {"delegates", {"projects/-/serviceAccounts/middle@p.iam"}},
            {"quota_project_id", "payer"},
            {"source_credentials",
             {{"type", "authorized_user"},
              {"client_id", "id"},
              {"client_secret", "hush"},
              {"refresh_token", "1//x"},
              {"token_uri", server_.address() + "/token"}}}};
  }

  std::mutex mutex_;
  std::map<std::string, Request> seen_;
  std::string refuse_;
  base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
  Server server_{[this](const Request& request) { return answer(request); }};
};

TEST_F(Exchange, OfATokenInAFile) {
  const auto found = of(file());
  EXPECT_EQ(header_of(found), "Authorization: Bearer federated");
  EXPECT_EQ(form("subject_token"), "from a file");
  EXPECT_EQ(form("grant_type"), "urn:ietf:params:oauth:grant-type:token-exchange");
  EXPECT_EQ(form("requested_token_type"), "urn:ietf:params:oauth:token-type:access_token");
  EXPECT_EQ(form("subject_token_type"), "urn:ietf:params:oauth:token-type:jwt");
  EXPECT_EQ(form("audience"), file()["audience"]);
  EXPECT_EQ(form("scope"), kCloudScope);
  EXPECT_EQ(seen("/sts").header("authorization"), "");
  // The file is read again for the next token: its owner replaces it.
  base::value_or_throw(base::write_file_atomically(folder_.path("subject"), "newer"));
  (*found)->reject("Authorization: Bearer federated");
  EXPECT_EQ(header_of(found), "Authorization: Bearer federated");
  EXPECT_EQ(form("subject_token"), "newer");
  base::value_or_throw(base::write_file_atomically(folder_.path("subject"), " \n"));
  (*found)->reject("Authorization: Bearer federated");
  EXPECT_TRUE(has(header_of(found), "subject is empty, expected a token")) << header_of(found);
}

TEST_F(Exchange, OfATokenAtAUrl) {
  json source = {{"url", server_.address() + "/subject"},
                 {"headers", {{"Metadata", "True"}}},
                 {"format", {{"type", "json"}, {"subject_token_field_name", "value"}}}};
  json external = file();
  external["credential_source"] = source;
  EXPECT_EQ(header_of(of(external)), "Authorization: Bearer federated");
  EXPECT_EQ(form("subject_token"), "from a url");
  EXPECT_EQ(seen("/subject").header("metadata"), "True");
  external["credential_source"]["format"]["subject_token_field_name"] = "id_token";
  EXPECT_TRUE(has(header_of(of(external)), "has no text 'id_token'")) << header_of(of(external));
  external["credential_source"]["url"] = server_.address() + "/gone";
  EXPECT_TRUE(has(header_of(of(external)), "credential_source.url")) << header_of(of(external));
}

TEST_F(Exchange, WithAClientAndAWorkforce) {
  json external = file();
  external["workforce_pool_user_project"] = "billed";
  EXPECT_EQ(header_of(of(external)), "Authorization: Bearer federated");
  EXPECT_EQ(form("options"), R"({"userProject":"billed"})");
  external["client_id"] = "me";
  external["client_secret"] = "hush";
  EXPECT_EQ(header_of(of(external)), "Authorization: Bearer federated");
  EXPECT_EQ(seen("/sts").header("authorization"), "Basic bWU6aHVzaA==");
  EXPECT_EQ(form("options"), "");
}

TEST_F(Exchange, ForAServiceAccount) {
  json external = file();
  external["service_account_impersonation_url"] = server_.address() + kAccount;
  external["service_account_impersonation"] = {{"token_lifetime_seconds", 1800}};
  const auto found = of(external);
  EXPECT_EQ(header_of(found), "Authorization: Bearer accounts");
  EXPECT_EQ(seen(kAccount).header("authorization"), "Bearer federated");
  EXPECT_EQ(json::parse(seen(kAccount).body), (json{{"scope", {kCloudScope}}, {"lifetime", "1800s"}}));
  EXPECT_TRUE(has((*found)->who(), "trainer@p.iam"));
}

TEST_F(Exchange, OfAUserForAServiceAccount) {
  const auto found = of(impersonated());
  EXPECT_EQ(header_of(found), "Authorization: Bearer accounts");
  EXPECT_EQ((*found)->quota_project(), "payer");
  EXPECT_EQ(seen(kAccount).header("authorization"), "Bearer users");
  EXPECT_EQ(seen(kAccount).header("x-goog-user-project"), "payer");
  EXPECT_EQ(json::parse(seen(kAccount).body)["delegates"], impersonated()["delegates"]);
  refuse_ = R"({"error":{"message":"Permission 'iam.serviceAccounts.getAccessToken' denied"}})";
  const std::string error = header_of(of(impersonated()));
  EXPECT_TRUE(has(error, "Service Account Token Creator on trainer@p.iam")) << error;
  EXPECT_TRUE(has(error, "the user's credentials in adc.json")) << error;
  EXPECT_TRUE(has(error, "getAccessToken")) << error;
  for (const char* secret : {"hush", "1//x", "Bearer"}) EXPECT_FALSE(has(error, secret)) << error;
}

TEST_F(Exchange, FilesThatCannotBeUsed) {
  const auto without = [](json file, const char* name) {
    file.erase(name);
    return error_of(file);
  };
  EXPECT_TRUE(has(without(file(), "audience"), "lack the text 'audience'"));
  EXPECT_TRUE(has(without(file(), "credential_source"), "credential_source is missing"));
  EXPECT_TRUE(has(without(impersonated(), "source_credentials"), "lack source_credentials"));
  EXPECT_TRUE(has(without(impersonated(), "service_account_impersonation_url"), "lack the text"));
  const auto source = [&](const json& value) {
    json external = file();
    external["credential_source"] = value;
    return error_of(external);
  };
  EXPECT_TRUE(has(source({{"executable", {{"command", "x"}}}}), "--credential-source-file"));
  EXPECT_TRUE(has(source({{"environment_id", "aws1"}, {"url", "https://x"}}), "'environment_id'"));
  EXPECT_TRUE(has(source({{"file", "a"}, {"url", "https://x"}}), "one of file and url"));
  EXPECT_TRUE(has(source({{"url", "http://provider.example/token"}}), "expected https"));
  EXPECT_TRUE(has(source({{"file", "a"}, {"format", {{"type", "xml"}}}}), "format 'xml'"));
  EXPECT_TRUE(has(source({{"url", "https://x"}, {"headers", {{"A", "b\r\nC: d"}}}}), "line break"));
  json twice = impersonated();
  twice["source_credentials"] = impersonated();
  EXPECT_TRUE(has(error_of(twice), "list the accounts in delegates"));
  json odd = impersonated();
  odd["service_account_impersonation_url"] = "https://iamcredentials.googleapis.com/v1/x";
  EXPECT_TRUE(has(error_of(odd), "generateAccessToken"));
}

TEST(Secrets, GoOnlyToGoogleOrThisMachine) {
  const auto allowed = [](const std::string& url, const std::string& universe = "googleapis.com") {
    return may_send_secret(url, {"x", "", universe}).has_value();
  };
  for (const char* url : {"https://oauth2.googleapis.com/token", "https://OAuth2.GoogleApis.com:443/token",
                          "https://www.googleapis.com/oauth2/v4/token",
                          "https://accounts.google.com/o/oauth2/token", "https://sts.googleapis.com/v1/token",
                          "http://127.0.0.1:8080/x", "http://localhost/x", "http://[::1]:1/x"})
    EXPECT_TRUE(allowed(url)) << url;
  for (const char* url :
       {"http://oauth2.googleapis.com/token", "https://example.com/token", "https://evilgoogleapis.com/token",
        "https://oauth2.googleapis.com.example.com/", "https://googleapis.com@example.com/",
        "https://example.com/googleapis.com", "http://127.0.0.1.example.com/", "ftp://www.googleapis.com/",
        "", "oauth2.googleapis.com"})
    EXPECT_FALSE(allowed(url)) << url;
  EXPECT_TRUE(allowed("https://oauth2.cloud.example/token", "cloud.example"));
  EXPECT_FALSE(allowed("https://oauth2.googleapis.com/token", "cloud.example"));
  const auto clear =
      may_send_secret("http://user:pass@www.googleapis.com/a?key=1", {"a token", "", "googleapis.com"});
  ASSERT_FALSE(clear);
  EXPECT_TRUE(has(clear.error().what(), "http://www.googleapis.com, unencrypted")) << clear.error().what();
  EXPECT_FALSE(has(clear.error().what(), "pass"));
}

TEST(Secrets, OfFilesThatNameAnotherServer) {
  json user = {{"type", "authorized_user"},
               {"client_id", "id"},
               {"client_secret", "hush"},
               {"refresh_token", "1//x"},
               {"token_uri", "https://oauth2.cloud.example/token"}};
  EXPECT_TRUE(has(error_of(user), "adc.json: token_uri: it would go to https://oauth2.cloud.example"))
      << error_of(user);
  user["universe_domain"] = "cloud.example";
  const auto found = of(user);
  ASSERT_TRUE(found) << found.error().what();
  EXPECT_TRUE((*found)->may_go_to("https://storage.cloud.example/x"));
  EXPECT_FALSE((*found)->may_go_to("https://storage.googleapis.com/x"));
}

// A server in between (or a wrong endpoint) that names an address of its own to upload to.
TEST(Secrets, OfAnUploadThatIsSentElsewhere) {
  std::string location = "http://storage.example/session";
  Server server([&](const Request& request) {
    if (request.path == "/token") return Reply{200, {}, R"({"access_token":"abc","expires_in":3600})"};
    return Reply{200, {"Location: " + location}, ""};
  });
  const auto http = std::make_shared<Http>();
  const auto user = std::make_shared<Credentials>("somebody", [] {
    return base::Result<Token>(Token{"abc", 3600});
  });
  const Storage storage(server.address(), {http, user});
  for (const char* elsewhere : {"http://storage.example/session", "http://storage.googleapis.com/session"}) {
    location = elsewhere;
    const auto upload = storage.start_upload({"b", "x"});
    ASSERT_FALSE(upload);
    EXPECT_TRUE(has(upload.error().what(), "named an address to upload to")) << upload.error().what();
    EXPECT_TRUE(has(upload.error().what(), "only by https")) << upload.error().what();
  }
  location = server.address() + "/session";
  EXPECT_TRUE(storage.start_upload({"b", "x"}));
  // No request with a token leaves for another host.
  HttpRequest request;
  request.url = "http://storage.example/x";
  const auto refused = Access{http, user}.once(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kPermissionDenied);
  // Without credentials, as with an emulator, it may.
  location = "http://storage.example/session";
  EXPECT_TRUE(Storage(server.address(), {http, anonymous_credentials(), true}).start_upload({"b", "x"}));
}

TEST(Secrets, ThatAreMissingSayWhereTheyWereLookedFor) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const Environment config("CLOUDSDK_CONFIG", folder.path()), host("GCE_METADATA_HOST", ""),
      check("NO_GCE_CHECK", "true");
  const auto http = std::make_shared<Http>();
  {
    const Environment own("GOOGLE_APPLICATION_CREDENTIALS", "");
    const auto nobody = base::value_or_throw(find_credentials(http));
    const Error error = explain({403, {}, ""}, "gs://b/x", {http, nobody});
    for (const char* part :
         {"GOOGLE_APPLICATION_CREDENTIALS is not set", "application_default_credentials.json", "NO_GCE_CHECK",
          "gcloud auth application-default login"})
      EXPECT_TRUE(has(error.what(), part)) << error.what();
    EXPECT_TRUE(has(error.what(), folder.path()));
  }
  const Environment own("GOOGLE_APPLICATION_CREDENTIALS", folder.path("gone.json"));
  const auto missing = find_credentials(http);
  ASSERT_FALSE(missing);
  for (const char* part :
       {"GOOGLE_APPLICATION_CREDENTIALS", "gone.json", "gcloud auth application-default login"})
    EXPECT_TRUE(has(missing.error().what(), part)) << missing.error().what();
}

}  // namespace
}  // namespace sluice::cloud
