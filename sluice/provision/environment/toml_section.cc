#include "sluice/provision/environment/toml_section.h"

#include "sluice/base/formats/parse_toml.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"

namespace sluice::provision {

base::Result<Section> Section::parse(const std::string& text, const std::string& path) {
  Section section;
  section.path_ = path;
  SLUICE_TRY(toml::table file, base::parse_toml(text, path));
  section.file_ = std::make_shared<const toml::table>(std::move(file));
  section.table_ = section.file_.get();
  return section;
}

tl::unexpected<Error> Section::wrong(const std::string& key, const std::string& message) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) node = table_;
  return base::fail(Code::kInvalidArgument, path_, ":", node->source().begin.line, ": ",
                    name_.empty() ? "" : name_ + ".", key, ": ", message);
}

base::Status Section::known(const std::vector<std::string>& keys) const {
  for (const auto& [key, node] : *table_) {
    const std::string name(key.str());
    if (std::find(keys.begin(), keys.end(), name) != keys.end()) continue;
    const std::string near = base::nearest(name, keys);
    return base::fail(
        Code::kInvalidArgument, path_, ":", key.source().begin.line, ": unknown ",
        name_.empty() ? "section [" + name + "]" : "key " + name + " in [" + name_ + "]",
        near.empty() ? "; known are " + base::join(keys, ", ") : "; did you mean " + near + "?");
  }
  return {};
}

bool Section::is_text(const std::string& key, const std::string& text) const {
  return table_->get(key)->value<std::string>() == text;
}

base::Result<Section> Section::section(const std::string& key) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr || !node->is_table()) return wrong(key, "expected a section: [" + key + "]");
  Section inner = *this;
  inner.table_ = node->as_table();
  inner.name_ = key;
  return inner;
}

base::Status Section::read(const std::string& key, std::string& value) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) return {};
  if (!node->is_string()) return wrong(key, "expected a text in quotes");
  value = node->as_string()->get();
  return {};
}

base::Status Section::read(const std::string& key, double& value) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) return {};
  if (!node->is_number()) return wrong(key, "expected a number");
  value = *node->value<double>();
  return {};
}

base::Status Section::read(const std::string& key, int& value) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) return {};
  const auto number = node->is_integer() ? node->value<int>() : std::nullopt;
  if (!number) return wrong(key, "expected a whole number");
  value = *number;
  return {};
}

base::Status Section::read(const std::string& key, bool& value) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) return {};
  if (!node->is_boolean()) return wrong(key, "expected true or false");
  value = node->as_boolean()->get();
  return {};
}

base::Status Section::read(const std::string& key, std::vector<std::string>& value) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) return {};
  const toml::array* array = node->as_array();
  if (array == nullptr) return wrong(key, "expected a list of texts: [\"a\", \"b\"]");
  value.clear();
  for (const toml::node& item : *array) {
    if (!item.is_string()) return wrong(key, "expected a list of texts: [\"a\", \"b\"]");
    value.push_back(item.as_string()->get());
  }
  return {};
}

base::Status Section::read(const std::string& key, std::map<std::string, std::string>& value) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) return {};
  const toml::table* table = node->as_table();
  if (table == nullptr) return wrong(key, "expected a table of texts: {NAME = \"value\"}");
  for (const auto& [name, item] : *table) {
    if (!item.is_string()) return wrong(key, base::str(name.str(), ": expected a text in quotes"));
    value[std::string(name.str())] = item.as_string()->get();
  }
  return {};
}

}  // namespace sluice::provision
