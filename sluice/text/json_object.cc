#include "sluice/text/json_object.h"

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/text/characters/unicode.h"

namespace sluice::text {

base::Result<JsonObject> JsonObject::of(const Json& json, std::string where) {
  if (json.is_discarded())  // a parser without exceptions found an error
    return base::fail(Code::kInvalidArgument, where, ": expected a JSON object, found no JSON");
  if (!json.is_object())
    return base::fail(Code::kInvalidArgument, where, ": expected an object, found ", json.type_name());
  JsonObject object;
  object.json_ = &json;
  object.where_ = std::move(where);
  return object;
}

bool JsonObject::has(const char* name) const {
  const auto found = json_->find(name);
  return found != json_->end() && !found->is_null();
}

base::Result<const Json*> JsonObject::field(const char* name) const {
  const auto found = json_->find(name);
  if (found == json_->end()) return fail("expected the field '", name, "', which is missing");
  return &*found;
}

base::Result<JsonObject> JsonObject::object(const char* name) const {
  SLUICE_TRY(const Json* const found, field(name));
  return of(*found, where_ + "." + name);
}

base::Result<std::string> JsonObject::text(const char* name) const {
  SLUICE_TRY(const Json* const found, field(name));
  if (!found->is_string()) return fail("expected a text as '", name, "', found ", found->type_name());
  return found->get<std::string>();
}

base::Result<std::string> JsonObject::text_or(const char* name, std::string absent) const {
  if (!has(name)) return absent;
  return text(name);
}

base::Result<bool> JsonObject::flag(const char* name) const {
  SLUICE_TRY(const Json* const found, field(name));
  if (!found->is_boolean()) return fail("expected true or false as '", name, "', found ", found->type_name());
  return found->get<bool>();
}

base::Result<bool> JsonObject::flag_or(const char* name, bool absent) const {
  if (!has(name)) return absent;
  return flag(name);
}

base::Result<std::int64_t> JsonObject::number(const char* name, std::int64_t low, std::int64_t high) const {
  SLUICE_TRY(const Json* const found, field(name));
  const bool whole = found->is_number_integer() &&
                     (!found->is_number_unsigned() || found->get<std::uint64_t>() <= INT64_MAX);
  if (!whole || found->get<std::int64_t>() < low || found->get<std::int64_t>() > high)
    return fail("expected a whole number from ", low, " to ", high, " as '", name, "'");
  return found->get<std::int64_t>();
}

base::Result<char32_t> JsonObject::character(const char* name) const {
  SLUICE_TRY(const std::string found, text(name));
  if (found.empty() || utf8_length(found[0]) != found.size())
    return fail("expected one character as '", name, "', found '", found, "'");
  std::size_t at = 0;
  return next_code_point(found, at);
}

base::Result<const Json*> JsonObject::list(const char* name) const {
  SLUICE_TRY(const Json* const found, field(name));
  if (!found->is_array()) return fail("expected a list as '", name, "', found ", found->type_name());
  return found;
}

tl::unexpected<Error> JsonObject::unknown(std::string_view kind, const std::string& found,
                                          const std::vector<std::string>& known) const {
  const std::string near = base::nearest(found, known);
  return base::fail(Code::kUnimplemented, where_, ": unknown ", kind, " '", found, "'",
                    near.empty() ? "" : "; did you mean '" + near + "'?", " Known are ",
                    base::join(known, ", "));
}

}  // namespace sluice::text
