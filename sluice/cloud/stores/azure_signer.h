// The identity of the program for Azure Blob Storage.
#pragma once

#include <memory>
#include <string>

#include "sluice/cloud/storage.h"

namespace sluice::cloud {

struct AzureSettings {
  std::string account;   // the account of the key and the signature; "": any
  std::string key;       // the account's key in base64; may be "", as all below
  std::string sas;       // a shared access signature: "sv=…&sig=…", without "?"
  std::string endpoint;  // "http://127.0.0.1:10000/devstoreaccount1"; "": https://ACCOUNT.blob.SUFFIX
  std::string suffix = "core.windows.net";  // other clouds have their own
  std::string secret_from, endpoint_from;   // the settings that named them, for errors
  std::shared_ptr<Credentials> tokens;      // null: none
  std::string looked_in;                    // for errors

  // Returns the URL of an account's containers, without a slash at the end.
  std::string place_of(const std::string& account_name) const;
};

// Searches in this order: AZURE_STORAGE_CONNECTION_STRING; AZURE_STORAGE_SAS_TOKEN; AZURE_STORAGE_KEY (these
// two with AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_SERVICE_ENDPOINT); AZURE_TENANT_ID and AZURE_CLIENT_ID
// with AZURE_CLIENT_SECRET or AZURE_FEDERATED_TOKEN_FILE; a managed identity; else anonymous, which is enough
// for public containers. The connection string UseDevelopmentStorage=true means an emulator on this machine
// (Azurite).
base::Result<AzureSettings> azure_settings_of_environment(std::shared_ptr<Http> http);

// Signs a request with an account's key ("Shared Key"): adds the headers x-ms-date, x-ms-version and
// Authorization.
base::Status sign_for_azure(HttpRequest& request, const std::string& account, const std::string& key,
                            std::time_t now);

// Signs requests to one account.
class AzureSigner : public Signer {
 public:
  AzureSigner(std::string account, const AzureSettings& settings)
      : account_(std::move(account)), settings_(settings) {}
  base::Result<HttpResponse> once(Http& http, HttpRequest request) override;
  Error explain(const HttpResponse& response, const std::string& what) const override;

 private:
  bool ours() const { return settings_.account.empty() || settings_.account == account_; }
  std::string who() const;

  const std::string account_;
  const AzureSettings settings_;
};

}  // namespace sluice::cloud
