// The rule for where a secret may be sent, for all stores and services.
#pragma once

#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::cloud {

// A secret in a request: a token, a key's signature, a password, or what a token is requested with.
struct Secret {
  std::string what = {};      // its name for the refusal: "AZURE_CLIENT_SECRET"; "": no secret
  std::string named_by = {};  // the setting that led to the address: "AZURE_AUTHORITY_HOST"; may be ""
  std::string hosts = {};     // it is sent only to this domain and its subdomains ("googleapis.com"); "": any
  // The server is the agent of the machine's own cloud (169.254.x.x), which only speaks plain http.
  bool to_agent = false;
};

// Returns the host of a URL as libcurl reads it, in lower case; kInvalidArgument for an invalid URL.
base::Result<std::string> host_of_url(const std::string& url);
// Returns whether the host is this machine: "127.0.0.1", "localhost", "[::1]". Only there plain http may
// carry a secret.
bool is_loopback(const std::string& host);
bool is_https(const std::string& url);

// Checks that the secret may be sent to the URL: by https to one of its hosts, or to this machine. Http::once
// checks each request, so that no store can forget it; code that reads an address from a file checks early.
base::Status may_send_secret(const std::string& url, const Secret& secret);
// Returns whether the address itself has a user or a password ("https://me:word@host/"). libcurl sends them
// to no other host.
bool has_user(const std::string& url);
// Finds the secret in a request's headers, independent of request.secret: Authorization, cookies, session
// tokens. The signature of a single request (AWS4-HMAC-SHA256) is not one. Without one, `what` is "".
Secret secret_in_headers(const std::vector<std::string>& headers);

// A server that was asked by https may not redirect to http.
base::Status may_redirect(const std::string& from, const std::string& to);

}  // namespace sluice::cloud
