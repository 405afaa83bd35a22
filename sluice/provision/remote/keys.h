// The user's key for virtual machines, and the metadata where Google's services keep the public half. File
// and form are gcloud's, so that a machine that one of the two has set up is open to the other.
#pragma once

#include <string>
#include <string_view>

#include "sluice/base/result.h"

namespace sluice::provision {

struct KeyPair {
  std::string path;        // the file of the private half, which this program never reads
  std::string public_key;  // "ssh-rsa AAAA… user@host"
};

// ~/.ssh/google_compute_engine
std::string default_key_path();

// Returns the pair at `path`; if there is none, ssh-keygen creates it, without a passphrase. A missing public
// half is derived from the private one. Errors: ssh-keygen is missing or fails, or a file is not a public
// key.
base::Result<KeyPair> find_or_make_key(const std::string& path);

// Returns whether the key opens this user's account, by "user" and "TYPE BLOB" of the lines of an `ssh-keys`
// entry ("user:TYPE BLOB comment"). A line with an expiry (google-ssh {…"expireOn"…}) does not count, as it
// may become invalid at any time.
bool has_key(std::string_view entry, std::string_view user, std::string_view public_key);
// Returns the entry with one more line.
std::string with_key(std::string_view entry, std::string_view user, std::string_view public_key);

// Returns a user name that Linux accepts: $USER, else the account's name; "user@example.com" gives "user".
std::string local_user();

}  // namespace sluice::provision
