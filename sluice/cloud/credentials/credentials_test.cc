#include "sluice/cloud/credentials/credentials.h"

#include <openssl/evp.h>
#include <openssl/pem.h>

#include <nlohmann/json.hpp>

#include "sluice/base/files/file.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/storage.h"
#include "sluice/cloud/test_support.h"

namespace sluice::cloud {
namespace {

using test::Environment;
using test::Reply;
using test::Request;
using test::Server;

std::string user_json(const Server& server) {
  return R"({"type":"authorized_user","client_id":"id","client_secret":"a&b","refresh_token":"1//x","token_uri":")" +
         server.address() + R"(/token"})";
}

Reply token(const std::string& value, double seconds = 3600) {
  return {200, {}, base::str("{\"access_token\":\"", value, "\",\"expires_in\":", seconds, "}")};
}

std::shared_ptr<Credentials> must(base::Result<std::shared_ptr<Credentials>> found) {
  EXPECT_TRUE(found) << found.error().what();
  return found ? *found : anonymous_credentials();
}

TEST(Credentials, OfAUser) {
  std::string form;
  Server server([&](const Request& request) {
    form = request.body;
    return token("abc");
  });
  const auto user = must(credentials_of_json(std::make_shared<Http>(), "adc.json", user_json(server)));
  EXPECT_EQ(user->header().value_or(""), "Authorization: Bearer abc");
  EXPECT_EQ(form, "grant_type=refresh_token&client_id=id&client_secret=a%26b&refresh_token=1%2F%2Fx");
  EXPECT_TRUE(user->header());
  EXPECT_EQ(server.requests(), 1);
}

TEST(Credentials, AreRenewedBeforeTheyExpire) {
  std::atomic<int> count{0};
  std::atomic<bool> broken{false};
  Server server([&](const Request&) {
    if (broken) return Reply{400, {}, R"({"error":"invalid_grant","error_description":"revoked"})"};
    return token("t" + std::to_string(++count));
  });
  test::FakeTime time;
  const auto user = must(
      credentials_of_json(std::make_shared<Http>(test::options_with(time)), "adc.json", user_json(server)));
  EXPECT_EQ(user->header().value_or(""), "Authorization: Bearer t1");
  time.advance(3600 - 226);
  EXPECT_EQ(user->header().value_or(""), "Authorization: Bearer t1");
  time.advance(2);
  EXPECT_EQ(user->header().value_or(""), "Authorization: Bearer t2");
  // Renewing fails: the old one does while it is good.
  broken = true;
  time.advance(3600 - 100);
  EXPECT_EQ(user->header().value_or(""), "Authorization: Bearer t2");
  time.advance(101);
  const auto failed = user->header();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::kPermissionDenied);
  EXPECT_NE(std::string(failed.error().what()).find("invalid_grant: revoked"), std::string::npos);
  EXPECT_NE(std::string(failed.error().what()).find("gcloud auth application-default login"),
            std::string::npos);
  EXPECT_EQ(std::string(failed.error().what()).find("1//x"), std::string::npos);
}

TEST(Credentials, ManyThreadsFetchOnce) {
  std::atomic<int> asking{0}, good{0};
  // The token is there only when all of them ask for it.
  Server server([&](const Request&) {
    while (asking < 8) std::this_thread::yield();
    return token("abc");
  });
  const auto user = must(credentials_of_json(std::make_shared<Http>(), "adc.json", user_json(server)));
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      ++asking;
      good += user->header() ? 1 : 0;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 8);
  EXPECT_EQ(server.requests(), 1);
}

// A key of the test's own.
struct Key {
  EVP_PKEY* key = EVP_RSA_gen(2048);
  ~Key() { EVP_PKEY_free(key); }
  std::string pem() const {
    BIO* bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PKCS8PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(bio, &bytes);
    std::string text(bytes, static_cast<std::size_t>(size));
    BIO_free(bio);
    return text;
  }
  bool verifies(const std::string& text, const std::string& signature) const {
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    const bool good =
        EVP_DigestVerifyInit(context, nullptr, EVP_sha256(), nullptr, key) == 1 &&
        EVP_DigestVerify(context, reinterpret_cast<const unsigned char*>(signature.data()), signature.size(),
                         reinterpret_cast<const unsigned char*>(text.data()), text.size()) == 1;
    EVP_MD_CTX_free(context);
    return good;
  }
};

std::string from_base64url(std::string text) {
  for (char& c : text) c = c == '-' ? '+' : c == '_' ? '/' : c;
  const std::size_t padding = (4 - text.size() % 4) % 4;
  text.append(padding, '=');
  std::string bytes(text.size() / 4 * 3, '\0');
  EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                  reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  bytes.resize(bytes.size() - padding);
  return bytes;
}

TEST(Credentials, OfAServiceAccount) {
  const Key key;
  std::string form;
  Server server([&](const Request& request) {
    form = request.body;
    return token("abc");
  });
  const nlohmann::json file = {{"type", "service_account"},
                               {"client_email", "trainer@project.iam"},
                               {"private_key_id", "k1"},
                               {"private_key", key.pem()},
                               {"token_uri", server.address() + "/token"}};
  const auto account = must(credentials_of_json(std::make_shared<Http>(), "key.json", file.dump()));
  EXPECT_EQ(account->header().value_or(""), "Authorization: Bearer abc");
  const std::string start = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
  ASSERT_EQ(form.substr(0, start.size()), start);
  const auto parts = base::split(form.substr(start.size()), '.');
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_TRUE(key.verifies(parts[0] + "." + parts[1], from_base64url(parts[2])));
  const auto header = nlohmann::json::parse(from_base64url(parts[0]));
  EXPECT_EQ(header, (nlohmann::json{{"alg", "RS256"}, {"typ", "JWT"}, {"kid", "k1"}}));
  const auto claims = nlohmann::json::parse(from_base64url(parts[1]));
  EXPECT_EQ(claims["iss"], "trainer@project.iam");
  EXPECT_EQ(claims["aud"], server.address() + "/token");
  EXPECT_EQ(claims["exp"].get<int64_t>() - claims["iat"].get<int64_t>(), 3600);
}

TEST(Credentials, FilesThatCannotBeUsed) {
  const auto http = std::make_shared<Http>();
  const auto error = [&](const std::string& text) {
    const auto found = credentials_of_json(http, "key.json", text);
    return found ? std::string("none") : std::string(found.error().what());
  };
  EXPECT_NE(error("{").find("not a JSON object"), std::string::npos);
  EXPECT_NE(error(R"({"type":"authorized_user","client_id":"x"})").find("lack the text 'client_secret'"),
            std::string::npos);
  EXPECT_NE(error(R"({"type":"gdch_service_account"})").find("of type 'gdch_service_account'"),
            std::string::npos);
  EXPECT_NE(error(R"({"type":"service_account","client_email":"x","private_key":"nonsense"})")
                .find("not an RSA key"),
            std::string::npos);
}

// The order: the environment's file, gcloud's, the metadata server, none.
TEST(Credentials, AreFoundInGooglesOrder) {
  Server server([](const Request& request) {
    if (request.path == "/computeMetadata/v1/instance/service-accounts/default/token" &&
        request.header("metadata-flavor") == "Google")
      return token("machine");
    return token(request.body.find("client_id=first") != std::string::npos ? "first" : "second");
  });
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const auto write = [&](const std::string& name, const std::string& id) {
    std::string json = user_json(server);
    json.replace(json.find(":\"id\""), 5, ":\"" + id + "\"");
    base::value_or_throw(base::write_file_atomically(folder.path(name), json));
  };
  write("own.json", "first");
  const auto http = std::make_shared<Http>();
  const auto who = [&] { return must(find_credentials(http))->header().value_or("?"); };
  const Environment host("GCE_METADATA_HOST", server.address().substr(7));
  const Environment config("CLOUDSDK_CONFIG", folder.path());
  {
    const Environment own("GOOGLE_APPLICATION_CREDENTIALS", "");
    EXPECT_EQ(who(), "Authorization: Bearer machine");
    write("application_default_credentials.json", "other");
    EXPECT_EQ(who(), "Authorization: Bearer second");
  }
  {
    const Environment own("GOOGLE_APPLICATION_CREDENTIALS", folder.path("own.json"));
    EXPECT_EQ(who(), "Authorization: Bearer first");
  }
  const Environment own("GOOGLE_APPLICATION_CREDENTIALS", folder.path("missing.json"));
  EXPECT_FALSE(find_credentials(http));
}

TEST(Credentials, NobodyElsewhere) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const Environment own("GOOGLE_APPLICATION_CREDENTIALS", ""), host("GCE_METADATA_HOST", ""),
      config("CLOUDSDK_CONFIG", folder.path()), check("NO_GCE_CHECK", "true");
  const auto found = must(find_credentials(std::make_shared<Http>()));
  EXPECT_TRUE(found->anonymous());
  EXPECT_EQ(found->header().value_or("?"), "");
}

// One deadline, and one count, for the request and the token that it needs.
TEST(Credentials, ATokenServerThatIsDownIsWaitedForAsLongAsOneRequest) {
  const test::Quiet quiet;
  std::atomic<int> asked{0}, sent{0};
  std::atomic<bool> down{true};
  Server server([&](const Request& request) {
    if (request.path != "/token") return ++sent, Reply{200, {}, "in"};
    ++asked;
    return down ? Reply{503, {}, ""} : token("abc");
  });
  test::FakeTime time;
  HttpOptions options = test::options_with(time);
  options.retry = {1, 4, 12};
  const auto http = std::make_shared<Http>(options);
  const Access access{http, must(credentials_of_json(http, "adc.json", user_json(server)))};
  HttpRequest request;
  request.url = server.address() + "/x";
  const auto response = access.send(request, "x");
  ASSERT_FALSE(response);
  const std::string message = response.error().what();
  double waited = 0;
  for (const double sleep : time.sleeps()) waited += sleep;
  EXPECT_LE(waited, 12);
  EXPECT_EQ(message.find("given up"), message.rfind("given up")) << message;
  EXPECT_NE(message.find("given up after " + std::to_string(asked) + " tries"), std::string::npos) << message;
  EXPECT_NE(message.find("a token for the user's credentials in adc.json"), std::string::npos) << message;
  EXPECT_EQ(sent, 0);
  down = false;
  EXPECT_TRUE(access.send(request, "x"));
}

// A token that is good still is used, and asked for now and then.
TEST(Credentials, AreNotAskedForWithEachRequestWhileTheServerIsDown) {
  const test::Quiet quiet;
  std::atomic<int> asked{0};
  Server server([&](const Request&) { return asked++ == 0 ? token("abc") : Reply{503, {}, ""}; });
  test::FakeTime time;
  const auto user = must(
      credentials_of_json(std::make_shared<Http>(test::options_with(time)), "adc.json", user_json(server)));
  EXPECT_TRUE(user->header());
  time.advance(3600 - 200);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(user->header().value_or(""), "Authorization: Bearer abc");
  EXPECT_EQ(asked, 2);
  time.advance(11);
  EXPECT_TRUE(user->header());
  EXPECT_EQ(asked, 3);
}

TEST(Credentials, ARefusedTokenIsFetchedAgainOnce) {
  std::atomic<int> tokens{0};
  std::string good = "t2";
  Server server([&](const Request& request) {
    if (request.path == "/token") return token("t" + std::to_string(++tokens));
    return request.header("authorization") == "Bearer " + good ? Reply{200, {}, "in"} : Reply{401, {}, "out"};
  });
  const auto http = std::make_shared<Http>();
  const Access access{http, must(credentials_of_json(http, "adc.json", user_json(server)))};
  HttpRequest request;
  request.url = server.address() + "/x";
  const auto response = access.send(request, "x");
  ASSERT_TRUE(response);
  EXPECT_EQ(response->body, "in");
  EXPECT_EQ(tokens, 2);
  good = "none";
  const auto refused = access.send(request, "x");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 401);
  EXPECT_EQ(tokens, 3);
  const Error error = explain(*refused, "gs://b/x", access);
  EXPECT_EQ(error.code(), Code::kPermissionDenied);
  EXPECT_NE(std::string(error.what()).find("the user's credentials in adc.json"), std::string::npos);
  EXPECT_EQ(std::string(error.what()).find("Bearer"), std::string::npos);
}

}  // namespace
}  // namespace sluice::cloud
