// The user's key for virtual machines, and where Google's services keep the public half: gcloud's file and
// gcloud's form, so that a machine that one of the two has set up is open to the other.
#pragma once

#include <string>
#include <string_view>

#include "sluice/base/result.h"

namespace sluice::provision {

struct KeyPair {
  std::string path;        // of the private half, which this program never reads
  std::string public_key;  // "ssh-rsa AAAA… user@host"
};

// ~/.ssh/google_compute_engine
std::string default_key_path();

// The pair at `path`; made by ssh-keygen, without a passphrase, where there is none. A public half that is
// missing is made of the private one. Errors: ssh-keygen is missing or fails, a file that is no public key.
base::Result<KeyPair> find_or_make_key(const std::string& path);

// "user" and "TYPE BLOB" of the lines of an `ssh-keys` entry ("user:TYPE BLOB comment"): whether the key
// opens this user's account there. A line with an expiry (google-ssh {…"expireOn"…}) does not count, as it
// may close at any time.
bool has_key(std::string_view entry, std::string_view user, std::string_view public_key);
// The entry with one line more.
std::string with_key(std::string_view entry, std::string_view user, std::string_view public_key);

// A user name that Linux takes: $USER, else the account's name; "user@example.com" gives "user".
std::string local_user();

}  // namespace sluice::provision
