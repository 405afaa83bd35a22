#include "sluice/google/buckets.h"

#include "sluice/cloud/http.h"

namespace sluice::google {
namespace {

Call call_for(const std::string& method, const std::string& path, const std::string& what) {
  return {.service = Service::kStorage, .method = method, .path = "/storage/v1/b" + path, .what = what};
}

std::string below(const std::string& bucket) { return "/" + cloud::percent_encode(bucket); }

}  // namespace

Bucket bucket_of(const Json& json) {
  Bucket bucket;
  bucket.name = text(json, "name");
  bucket.location = text(json, "location");
  bucket.storage_class = text(json, "storageClass");
  bucket.labels = texts(json, "labels");
  bucket.created = seconds_of_time(text(json, "timeCreated"));
  return bucket;
}

Outcome<Bucket> Buckets::get(const std::string& name) {
  GOOGLE_TRY(const Json json, api_.call(call_for("GET", below(name), "the bucket " + name)));
  return bucket_of(json);
}

Outcome<std::vector<Bucket>> Buckets::list() {
  Call call = call_for("GET", "", "the buckets of " + project_);
  call.query = {{"project", project_}};
  GOOGLE_TRY(const auto listed, api_.list(call, "items", bucket_of));
  return listed.items;
}

Outcome<Bucket> Buckets::create(const Json& body) {
  Call call = call_for("POST", "", "creating the bucket " + text(body, "name"));
  call.query = {{"project", project_}};
  call.body = body;
  GOOGLE_TRY(const Json json, api_.call(call));
  return bucket_of(json.empty() ? body : json);
}

Outcome<Bucket> Buckets::patch(const std::string& name, const Json& body) {
  Call call = call_for("PATCH", below(name), "changing the bucket " + name);
  call.body = body;
  GOOGLE_TRY(const Json json, api_.call(call));
  return bucket_of(json.empty() ? body : json);
}

Done Buckets::remove(const std::string& name) {
  const auto answer = api_.call(call_for("DELETE", below(name), "deleting the bucket " + name));
  if (answer) return {};
  Failure failure = answer.error();
  // The only conflict of a delete: the bucket contains objects.
  if (failure.status == 409) failure.kind = Kind::kWrongState;
  return tl::unexpected<Failure>(failure);
}

Outcome<std::vector<std::string>> Buckets::objects(const std::string& name, int limit) {
  Call call = call_for("GET", below(name) + "/o", "the objects of the bucket " + name);
  call.query = {{"fields", "items(name),nextPageToken"}};
  std::vector<std::string> names;
  if (limit > 0) {
    call.query.emplace_back("maxResults", std::to_string(limit));
    GOOGLE_TRY(const Json page, api_.call(call));
    for (const Json& item : elements(page, "items")) names.push_back(text(item, "name"));
    return names;
  }
  GOOGLE_TRY(const Json all, api_.pages(call, "items", nullptr));
  for (const Json& item : all) names.push_back(text(item, "name"));
  return names;
}

Done Buckets::remove_object(const std::string& name, const std::string& object) {
  const auto answer = api_.call(call_for("DELETE", below(name) + "/o/" + cloud::percent_encode(object),
                                         "deleting gs://" + name + "/" + object));
  if (answer || answer.error().kind == Kind::kNotFound) return {};
  return tl::unexpected<Failure>(answer.error());
}

}  // namespace sluice::google
