#include "sluice/provision/remote/members.h"

#include "sluice/base/text/join.h"
#include "sluice/provision/compute_slices.h"
#include "sluice/provision/compute_template.h"

namespace sluice::provision {
namespace {

using google::Json;
using google::Outcome;
using google::Scope;

constexpr const char* kHostKeys = "hostkeys/";

Member member_of(const google::Node& node) {
  Member member;
  member.zone = node.zone;
  member.name = node.id;
  member.id = google::text(node.json, "id");
  member.metadata = node.metadata;
  member.endpoints = node.endpoints;
  return member;
}

Member member_of(const Json& machine) {
  Member member;
  member.is_machine = true;
  member.zone = google::last_piece(google::text(machine, "zone"));
  member.name = google::text(machine, "name");
  member.id = google::text(machine, "id");
  member.metadata = metadata_of_items(google::at(machine, "metadata"));
  member.fingerprint = google::text(machine, "metadata.fingerprint");
  member.endpoints = endpoints_of_instances(Json::array({machine}));
  return member;
}

}  // namespace

std::string Member::alias(int worker) const {
  return is_machine ? base::str("compute.", id) : host_key_alias(id, worker);
}

std::vector<Member> members_of(const Slice& slice) {
  std::vector<Member> members;
  for (const google::Node& node : slice.nodes) members.push_back(member_of(node));
  for (const Json& machine : slice.instances) members.push_back(member_of(machine));
  return members;
}

Outcome<Member> look_again(Cloud& cloud, const Member& member) {
  if (member.is_machine) {
    GOOGLE_TRY(const Json machine, cloud.compute().get(Scope::zone(member.zone), "instances", member.name));
    return member_of(machine);
  }
  GOOGLE_TRY(const google::Node node, cloud.tpu().node(member.zone, member.name));
  return member_of(node);
}

Outcome<google::Operation> write_metadata(Cloud& cloud, const Member& member, const google::Texts& metadata) {
  if (!member.is_machine) return cloud.tpu().patch_metadata(member.zone, member.name, metadata);
  return cloud.compute().act(Scope::zone(member.zone), "instances", member.name, "setMetadata",
                             {{"fingerprint", member.fingerprint}, {"items", items_of_metadata(metadata)}});
}

Outcome<std::vector<std::vector<HostKey>>> published_keys(Cloud& cloud, const Member& member,
                                                          const std::vector<std::string>& workers) {
  std::vector<Json> attributes;
  if (member.is_machine) {
    const auto items = cloud.compute().guest_attributes(member.zone, member.name, kHostKeys);
    // The machine has not published any yet.
    if (!items && items.error().kind != google::Kind::kNotFound)
      return tl::unexpected<google::Failure>(items.error());
    if (items) attributes = {{{"queryValue", {{"items", *items}}}}};
  } else {
    GOOGLE_TRY(attributes, cloud.tpu().guest_attributes(member.zone, member.name, kHostKeys, workers));
  }
  const auto keys = parse_guest_attributes(Json{{"guestAttributes", attributes}}.dump());
  if (!keys) return tl::unexpected<google::Failure>(keys.error());
  auto result = *keys;
  result.resize(workers.size());
  return result;
}

}  // namespace sluice::provision
