// Where a secret may be sent: one rule for all stores and services.
#pragma once

#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::cloud {

// A token, a key's signature, a password or what a token is asked for with, as a request carries it.
struct Secret {
  std::string what = {};      // for the refusal: "AZURE_CLIENT_SECRET"; "": there is none
  std::string named_by = {};  // the setting that led to the address: "AZURE_AUTHORITY_HOST"; may be ""
  std::string hosts = {};  // it is sent only to this domain and those below it ("googleapis.com"); "": to any
  // What answers is the agent of the machine's own cloud (169.254.x.x), which speaks plain http by nature.
  bool to_agent = false;
};

// The host of a URL as libcurl reads it, in lower case; kInvalidArgument for what is none.
base::Result<std::string> host_of_url(const std::string& url);
// "127.0.0.1", "localhost", "[::1]": this machine. Only there plain http is good enough for a secret.
bool is_loopback(const std::string& host);
bool is_https(const std::string& url);

// Whether the secret may be sent to the URL: by https to one of its hosts, or to this machine. Http::once
// asks it of each request, so that no store can forget it; whoever reads an address from a file asks early.
base::Status may_send_secret(const std::string& url, const Secret& secret);
// Whether the address itself has a user or a password ("https://me:word@host/"). libcurl takes them to no
// other host.
bool has_user(const std::string& url);
// The secret that a request's headers show, whatever its sender says of it: Authorization, cookies, session
// tokens. The signature of a single request (AWS4-HMAC-SHA256) is none. Without one, `what` is "".
Secret secret_in_headers(const std::vector<std::string>& headers);

// A server that was asked by https may not lead on to http.
base::Status may_redirect(const std::string& from, const std::string& to);

}  // namespace sluice::cloud
