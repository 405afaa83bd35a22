#include "sluice/provision/remote/host_keys.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"

namespace sluice::provision {
namespace {
using nlohmann::json;

// A key is one word of base64: nothing else may get into a file that ssh trusts.
bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '+' || c == '/' || c == '=' ||
           c == '.' || c == '@';
  });
}

std::vector<HostKey> keys_of(const json& entry) {
  std::vector<HostKey> keys;
  for (const json& item : entry.value("queryValue", json::object()).value("items", json::array())) {
    if (item.value("namespace", "") != "hostkeys") continue;
    HostKey key{item.value("key", ""), item.value("value", "")};
    key.blob = std::string(base::trim(key.blob));
    if (is_word(key.type) && is_word(key.blob)) keys.push_back(std::move(key));
  }
  return keys;
}

}  // namespace

std::string host_key_alias(std::string_view node_id, int worker) {
  return base::str("tpu.", node_id, "-", worker);
}

base::Result<std::vector<std::vector<HostKey>>> parse_guest_attributes(const std::string& text) {
  std::vector<std::vector<HostKey>> workers;
  try {
    for (const json& entry : base::parse_json(text).value("guestAttributes", json::array()))
      workers.push_back(keys_of(entry));
  } catch (const json::exception& error) {
    return base::fail(Code::kDataLoss, "the guest attributes with the host keys are not of the form that ",
                      "was expected: ", error.what());
  }
  return workers;
}

bool knows_host(std::string_view known_hosts, std::string_view alias) {
  const std::string start = base::str(alias, ' ');
  return known_hosts.starts_with(start) || known_hosts.find("\n" + start) != std::string_view::npos;
}

std::string with_host(std::string_view known_hosts, std::string_view alias,
                      const std::vector<HostKey>& keys) {
  std::string text(known_hosts);
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  if (knows_host(text, alias)) return text;
  for (const HostKey& key : keys) text += base::str(alias, ' ', key.type, ' ', key.blob, '\n');
  return text;
}

}  // namespace sluice::provision
