#include "sluice/provision/environment/survey.h"

#include <algorithm>

#include "sluice/base/text/join.h"
#include "sluice/google/buckets.h"
#include "sluice/google/filestore.h"
#include "sluice/provision/price.h"

namespace sluice::provision {
namespace {

using google::Json;
using google::Kind;
using google::Outcome;
using google::text;

bool ours_by_name(const std::string& name) { return name.starts_with(kNamePrefix); }

// Returns the part that an instance is, by its name: all others of an environment are machines.
Part part_of_instance(const std::string& name, const std::optional<Mark>& mark) {
  return mark && name == prepare_name(mark->environment) ? Part::kPrepare : Part::kMachine;
}

// Sets the fields that all kinds have; the mark comes from the labels.
Piece piece_of(Part part, const std::string& name, const std::string& zone, const std::string& state,
               double created, const google::Texts& labels) {
  Piece piece;
  piece.part = part;
  piece.name = name;
  piece.zone = zone;
  piece.state = state;
  piece.created = created;
  piece.labels = labels;
  piece.mark = mark_of_labels(labels);
  return piece;
}

Piece compute_piece(Part part, const Json& json) {
  return piece_of(part, text(json, "name"), google::last_piece(text(json, "zone")), text(json, "status"),
                  google::seconds_of_time(text(json, "creationTimestamp")), google::texts(json, "labels"));
}

// Returns the list, or an empty one if the project has not enabled its service, which is then noted in
// `found`.
template <typename T>
Outcome<T> unless_disabled(const Cloud& cloud, Outcome<T> listed, Survey& found) {
  if (listed || listed.error().kind != Kind::kApiDisabled) return listed;
  found.gaps.not_enabled.push_back(base::str(cloud.project, " ", listed.error().service));
  return T{};
}

void keep(Survey& found, Piece piece) {
  if (piece.mark || ours_by_name(piece.name)) found.pieces.push_back(std::move(piece));
}

google::Done look_at_networks(Cloud& cloud, Survey& found) {
  google::Compute compute = cloud.compute();
  for (const auto& [collection, part] :
       {std::pair("networks", Part::kNetwork), std::pair("firewalls", Part::kFirewall)}) {
    GOOGLE_TRY(const auto all,
               unless_disabled(cloud, compute.list(google::Scope::global(), collection), found));
    for (const Json& json : all.items) {
      Piece piece = compute_piece(part, json);
      piece.mark = mark_of_description(text(json, "description"));
      auto ranges = google::items(json, "sourceRanges");
      std::sort(ranges.begin(), ranges.end());
      piece.type = base::join(ranges, ",");
      piece.hourly = 0;
      keep(found, std::move(piece));
    }
  }
  return {};
}

google::Done look_at_machines(Cloud& cloud, Survey& found) {
  google::Compute compute = cloud.compute();
  GOOGLE_TRY(const auto instances, unless_disabled(cloud, compute.aggregated("instances"), found));
  for (const Json& json : instances.items) {
    Piece piece = compute_piece(Part::kMachine, json);
    piece.part = part_of_instance(piece.name, piece.mark);
    piece.type = google::last_piece(text(json, "machineType"));
    const auto interfaces = google::elements(json, "networkInterfaces");
    if (!interfaces.empty()) piece.address = text(interfaces[0], "networkIP");
    const bool spot = text(json, "scheduling.provisioningModel") == "SPOT";
    piece.hourly = piece.state == "TERMINATED" ? 0 : machine_price(piece.type, spot);
    keep(found, std::move(piece));
  }
  GOOGLE_TRY(const auto disks, unless_disabled(cloud, compute.aggregated("disks"), found));
  for (const Json& json : disks.items) {
    Piece piece = compute_piece(Part::kDisk, json);
    piece.type = google::last_piece(text(json, "type"));
    piece.size_gb = google::number(json, "sizeGb");
    piece.hourly = disk_price(piece.type, piece.size_gb);
    // Boot disks have the names of their machines and are deleted with them.
    const bool boot = piece.mark && piece.name != disk_name(piece.mark->environment);
    if (!boot && (piece.mark || piece.name.ends_with("-disk"))) keep(found, std::move(piece));
  }
  for (const auto* list : {&instances, &disks})
    for (const std::string& zone : list->unreachable) found.gaps.unreachable.push_back(zone);
  return {};
}

google::Done look_at_shares(Cloud& cloud, Survey& found) {
  google::Filestores filestores(*cloud.api, cloud.project);
  GOOGLE_TRY(const auto shares, unless_disabled(cloud, filestores.list(), found));
  for (const google::Filestore& share : shares.items) {
    Piece piece = piece_of(Part::kNfs, share.id, share.zone, share.state, share.created, share.labels);
    piece.type = share.tier;
    piece.size_gb = share.capacity_gb;
    piece.address = share.ip;
    piece.hourly = filestore_price(share.tier, share.capacity_gb);
    keep(found, std::move(piece));
  }
  for (const std::string& zone : shares.unreachable) found.gaps.unreachable.push_back(zone);
  return {};
}

google::Done look_at_buckets(Cloud& cloud, Survey& found) {
  google::Buckets buckets(*cloud.api, cloud.project);
  GOOGLE_TRY(const auto all, unless_disabled(cloud, buckets.list(), found));
  for (const google::Bucket& bucket : all) {
    Piece piece =
        piece_of(Part::kBucket, bucket.name, bucket.location, "READY", bucket.created, bucket.labels);
    piece.type = bucket.storage_class;
    keep(found, std::move(piece));
  }
  return {};
}

google::Done look_at_slices(Cloud& cloud, Survey& found) {
  GOOGLE_TRY(found.slices, unless_disabled(cloud, list_slices(cloud, &found.gaps.unreachable), found));
  for (const Slice& slice : found.slices) {
    // A slice of `sluice tpu create --env` belongs to the environment too.
    Piece piece = piece_of(Part::kTpu, slice.name, slice.zone, slice.state, slice.created,
                           slice.nodes.empty() ? google::Texts() : slice.nodes.front().labels);
    piece.mark = slice.mark;
    piece.type = slice.type;
    const auto hosts = slice.hosts();
    if (!hosts.empty()) piece.address = hosts.front().internal_ip;
    piece.hourly = tpu_price(slice.type, slice.capacity == Capacity::kSpot, slice.slices);
    if (slice.nodes.empty() && !slice.compute) piece.hourly = 0;
    piece.slice = slice;
    keep(found, std::move(piece));
    // The machines of a group are parts of the slice.
    for (const Json& machine : slice.instances)
      std::erase_if(found.pieces, [&](const Piece& other) {
        return other.part == Part::kMachine && other.name == text(machine, "name") &&
               other.zone == slice.zone;
      });
  }
  return {};
}

}  // namespace

const Piece* Survey::find(Part part, const std::string& name) const {
  const auto found = std::find_if(pieces.begin(), pieces.end(), [&](const Piece& piece) {
    return piece.part == part && piece.name == name;
  });
  return found == pieces.end() ? nullptr : &*found;
}

std::vector<Piece> Survey::of(const std::string& environment) const {
  std::vector<Piece> found;
  for (const Part part : kParts)
    for (const Piece& piece : pieces)
      if (piece.part == part && whose(piece.mark, environment) == Whose::kOurs) found.push_back(piece);
  return found;
}

std::vector<std::string> Survey::environments() const {
  std::vector<std::string> names;
  for (const Piece& piece : pieces)
    if (piece.mark && std::find(names.begin(), names.end(), piece.mark->environment) == names.end())
      names.push_back(piece.mark->environment);
  std::sort(names.begin(), names.end());
  return names;
}

Outcome<Survey> survey(Cloud& cloud) {
  Survey found;
  GOOGLE_OK(look_at_networks(cloud, found));
  GOOGLE_OK(look_at_machines(cloud, found));
  GOOGLE_OK(look_at_shares(cloud, found));
  GOOGLE_OK(look_at_buckets(cloud, found));
  GOOGLE_OK(look_at_slices(cloud, found));
  for (std::vector<std::string>* list : {&found.gaps.unreachable, &found.gaps.not_enabled}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  return found;
}

}  // namespace sluice::provision
