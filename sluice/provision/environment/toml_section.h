// A table of a TOML file, read key by key; errors name path and line.
#pragma once

#include <toml++/toml.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::provision {

// A view that keeps the whole file alive. Threads: one at a time.
class Section {
 public:
  static base::Result<Section> parse(const std::string& text, const std::string& path);

  // kInvalidArgument for a key that is not in the list; names the nearest.
  base::Status known(const std::vector<std::string>& keys) const;
  bool has(const std::string& key) const { return table_->contains(key); }
  bool is_text(const std::string& key, const std::string& text) const;
  base::Result<Section> section(const std::string& key) const;

  // Each leaves the value as it is if the key is missing.
  base::Status read(const std::string& key, std::string& value) const;
  base::Status read(const std::string& key, double& value) const;
  base::Status read(const std::string& key, int& value) const;
  base::Status read(const std::string& key, bool& value) const;
  base::Status read(const std::string& key, std::vector<std::string>& value) const;
  base::Status read(const std::string& key, std::map<std::string, std::string>& value) const;

  // Returns the error "PATH:LINE: tpu.type: MESSAGE".
  tl::unexpected<Error> wrong(const std::string& key, const std::string& message) const;

 private:
  std::shared_ptr<const toml::table> file_;
  const toml::table* table_ = nullptr;
  std::string path_, name_;  // name_: "" for the whole file
};

}  // namespace sluice::provision
